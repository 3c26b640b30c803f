package smoke

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	logspb "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// filler gives every field of an OTLP message a value, as the protocol's own
// description has them, so that a position that it gets later is planted, too.
type filler struct {
	// text is at each position of a text, and its bytes at each of bytes.
	text string
	// time is what fields of times have.
	time uint64
	// names are what fields of these full names have instead: what a program's
	// source gives, and no data.
	names map[protoreflect.FullName]string
	// variant chooses one of what a field may hold either of.
	variant int
	// values is how many values hold the one that is filled.
	values  int
	ids     byte
	planted int
}

// maxFilled is how deep messages within messages are filled.
const maxFilled = 12

func (f *filler) fill(message protoreflect.Message, depth int) {
	if depth > maxFilled {
		return
	}
	variant := f.variant
	if message.Descriptor().Name() == "AnyValue" {
		variant += f.values
		f.values++
		defer func() { f.values-- }()
	}
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if group := field.ContainingOneof(); group != nil && group.Fields().Get(variant%group.Fields().Len()) != field {
			continue
		}
		// There is one bucket, which needs no bound.
		if field.Name() == "explicit_bounds" {
			continue
		}
		if field.IsList() {
			list := message.Mutable(field).List()
			if field.Message() != nil {
				f.fill(list.AppendMutable().Message(), depth+1)
			} else {
				list.Append(f.scalar(field))
			}
			continue
		}
		if field.Message() != nil {
			f.fill(message.Mutable(field).Message(), depth+1)
			continue
		}
		message.Set(field, f.scalar(field))
	}
}

func (f *filler) scalar(field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		text, isName := f.names[field.FullName()]
		if !isName {
			f.planted++
			text = f.text
		}
		if field.FullName() == "opentelemetry.proto.metrics.v1.Metric.name" {
			// A metric of one name has one kind.
			text += "." + string(rune('a'+f.variant%5))
		}
		return protoreflect.ValueOfString(text)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(f.bytes(field.Name()))
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(values.Len() - 1).Number())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(0)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(1)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(0)
	default:
		if name := string(field.Name()); len(name) > 5 && name[len(name)-5:] == "_nano" {
			return protoreflect.ValueOfUint64(f.time)
		}
		return protoreflect.ValueOfUint64(1)
	}
}

// bytes returns an id of the size that it has to have, and else the text.
func (f *filler) bytes(name protoreflect.Name) []byte {
	f.ids++
	switch name {
	case "trace_id":
		return append(make([]byte, 15), f.ids)
	case "span_id", "parent_span_id":
		return append(make([]byte, 7), f.ids)
	default:
		f.planted++
		return []byte(f.text)
	}
}

// filledTraces returns a request with the text at each position.
func filledTraces(t *testing.T, f *filler) ptrace.Traces {
	t.Helper()
	message := &tracepb.TracesData{}
	f.fill(message.ProtoReflect(), 0)
	data, err := proto.Marshal(message)
	require.NoError(t, err)
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data)
	require.NoError(t, err)
	// span_metrics leaves out who has no name.
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "anyone")
	return td
}

func filledMetrics(t *testing.T, f *filler) pmetric.Metrics {
	t.Helper()
	message := &metricspb.MetricsData{}
	f.fill(message.ProtoReflect(), 0)
	data, err := proto.Marshal(message)
	require.NoError(t, err)
	md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
	require.NoError(t, err)
	return md
}

func filledLogs(t *testing.T, f *filler) plog.Logs {
	t.Helper()
	message := &logspb.LogsData{}
	f.fill(message.ProtoReflect(), 0)
	data, err := proto.Marshal(message)
	require.NoError(t, err)
	ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(data)
	require.NoError(t, err)
	return ld
}
