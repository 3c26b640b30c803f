package request

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

var defaults = Limits{Depth: 1_000, Messages: 250_000}

// exceeded checks a request in parts of that many bytes.
func exceeded(check Check, request []byte, size int) string {
	for len(request) > 0 {
		n := min(size, len(request))
		check.Write(request[:n])
		request = request[n:]
	}
	return check.Exceeded()
}

// positions are all places of a request that have values, each with a function
// that makes a request with a value there.
func positions() map[string]func(v pcommon.Value) (protobuf, json []byte) {
	attribute := func(m pcommon.Map, v pcommon.Value) { v.CopyTo(m.PutEmpty("k")) }
	found := map[string]func(v pcommon.Value) ([]byte, []byte){}
	for name, put := range map[string]func(ptrace.ResourceSpans, pcommon.Value){
		"resource": func(rs ptrace.ResourceSpans, v pcommon.Value) { attribute(rs.Resource().Attributes(), v) },
		"scope": func(rs ptrace.ResourceSpans, v pcommon.Value) {
			attribute(rs.ScopeSpans().AppendEmpty().Scope().Attributes(), v)
		},
		"span": func(rs ptrace.ResourceSpans, v pcommon.Value) {
			attribute(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes(), v)
		},
		"event": func(rs ptrace.ResourceSpans, v pcommon.Value) {
			attribute(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Events().AppendEmpty().Attributes(), v)
		},
		"link": func(rs ptrace.ResourceSpans, v pcommon.Value) {
			attribute(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Links().AppendEmpty().Attributes(), v)
		},
	} {
		found["traces "+name] = func(v pcommon.Value) ([]byte, []byte) {
			td := ptrace.NewTraces()
			put(td.ResourceSpans().AppendEmpty(), v)
			request := ptraceotlp.NewExportRequestFromTraces(td)
			protobuf, _ := request.MarshalProto()
			json, _ := request.MarshalJSON()
			return protobuf, json
		}
	}
	for name, put := range map[string]func(plog.LogRecord, pcommon.Value){
		"body":      func(r plog.LogRecord, v pcommon.Value) { v.CopyTo(r.Body()) },
		"attribute": func(r plog.LogRecord, v pcommon.Value) { attribute(r.Attributes(), v) },
	} {
		found["logs "+name] = func(v pcommon.Value) ([]byte, []byte) {
			ld := plog.NewLogs()
			put(ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty(), v)
			request := plogotlp.NewExportRequestFromLogs(ld)
			protobuf, _ := request.MarshalProto()
			json, _ := request.MarshalJSON()
			return protobuf, json
		}
	}
	for name, put := range map[string]func(pmetric.Metric, pcommon.Value){
		"metadata": func(m pmetric.Metric, v pcommon.Value) { attribute(m.Metadata(), v) },
		"gauge": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes(), v)
		},
		"sum": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptySum().DataPoints().AppendEmpty().Attributes(), v)
		},
		"histogram": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptyHistogram().DataPoints().AppendEmpty().Attributes(), v)
		},
		"exponential": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes(), v)
		},
		"summary": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptySummary().DataPoints().AppendEmpty().Attributes(), v)
		},
		"exemplar of a gauge": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptyGauge().DataPoints().AppendEmpty().Exemplars().AppendEmpty().FilteredAttributes(), v)
		},
		"exemplar of a histogram": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptyHistogram().DataPoints().AppendEmpty().Exemplars().AppendEmpty().FilteredAttributes(), v)
		},
		"exemplar of an exponential histogram": func(m pmetric.Metric, v pcommon.Value) {
			attribute(m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Exemplars().AppendEmpty().FilteredAttributes(), v)
		},
	} {
		found["metrics "+name] = func(v pcommon.Value) ([]byte, []byte) {
			md := pmetric.NewMetrics()
			put(md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty(), v)
			request := pmetricotlp.NewExportRequestFromMetrics(md)
			protobuf, _ := request.MarshalProto()
			json, _ := request.MarshalJSON()
			return protobuf, json
		}
	}
	return found
}

// The list is read at each start of the collector, and costs next to nothing.
func TestReadMessages(t *testing.T) {
	assert.Less(t, testing.AllocsPerRun(10, func() { readMessages() }), 300.0)
}

// At each position, a value at the limit passes and one beyond it does not,
// whatever the parts.
func TestDepthAtEachPosition(t *testing.T) {
	limits := Limits{Depth: 100, Messages: 10_000}
	for name, request := range positions() {
		t.Run(name, func(t *testing.T) {
			atLimit, beyond, far := pcommon.NewValueEmpty(), pcommon.NewValueEmpty(), pcommon.NewValueEmpty()
			otlpnest.Value(atLimit, 100)
			otlpnest.Value(beyond, 101)
			otlpnest.Value(far, 150)
			within, withinJSON := request(atLimit)
			deeper, _ := request(beyond)
			_, farJSON := request(far)
			for _, size := range []int{1, 7, len(deeper)} {
				assert.Empty(t, exceeded(NewProtobuf("/", limits), within, size))
				assert.Equal(t, LimitDepth, exceeded(NewProtobuf("/", limits), deeper, size))
				assert.Empty(t, exceeded(NewJSON(limits), withinJSON, size))
				assert.Equal(t, LimitDepth, exceeded(NewJSON(limits), farJSON, size))
			}
		})
	}
}

// What the decoder takes for nesting, though no encoder writes it.
func TestUnusualEncodings(t *testing.T) {
	group := otlpnest.Field(2, otlpnest.Field(5, otlpnest.Arrays(2_000)))
	deep := otlpnest.Field(2, group)
	const deprecated = 1000<<3 | 2
	tag := []byte{deprecated&0x7f | 0x80, deprecated >> 7}
	for name, request := range map[string][]byte{
		"a deprecated group":      otlpnest.Field(1, append(tag, otlpnest.Field(1, group)[1:]...)),
		"behind a group":          append([]byte{9<<3 | 3, 9 << 3, 1}, otlpnest.Field(1, deep)...),
		"a number of many bytes":  append([]byte{1<<3 | 2 | 0x80, 0x80, 0x80, 0x80, 0x80, 0x20}, otlpnest.Field(1, deep)[1:]...),
		"behind an unknown field": append(otlpnest.Field(9, []byte("any")), otlpnest.Field(1, deep)...),
		"cut off":                 otlpnest.Field(1, deep)[:12_000],
	} {
		for _, size := range []int{1, len(request)} {
			assert.Equal(t, LimitDepth, exceeded(newProtobuf(messages["logsRequest"], defaults), request, size), name)
		}
	}
	within := otlpnest.Field(1, otlpnest.Field(2, otlpnest.Field(2, otlpnest.Field(5, otlpnest.Arrays(999)))))
	assert.Empty(t, exceeded(NewProtobuf("/", defaults), within, len(within)))
}

// Text is not mistaken for nesting.
func TestTextsPass(t *testing.T) {
	for _, text := range []string{strings.Repeat("[{", 5_000), strings.Repeat(`\"{[`, 5_000), string(otlpnest.Arrays(5_000)), string(otlpnest.Maps(5_000))} {
		for name, request := range positions() {
			v := pcommon.NewValueStr(text)
			protobuf, json := request(v)
			assert.Empty(t, exceeded(NewProtobuf("/", defaults), protobuf, 4096), name)
			assert.Empty(t, exceeded(NewJSON(defaults), json, 4096), name)
		}
	}
}

func TestManyMessagesExceedTheLimit(t *testing.T) {
	limits := Limits{Depth: 64, Messages: 1_000}
	many := func(n int) []byte { return []byte(strings.Repeat("\x0a\x00", n)) }
	for name, wrap := range map[string]func([]byte) []byte{
		"resources":  func(b []byte) []byte { return b },
		"attributes": func(b []byte) []byte { return otlpnest.Field(1, otlpnest.Field(1, b)) },
		"elements": func(b []byte) []byte {
			return otlpnest.Field(1, otlpnest.Field(2, otlpnest.Field(2, otlpnest.Field(5, otlpnest.Field(5, b)))))
		},
	} {
		assert.Empty(t, exceeded(NewProtobuf("/", limits), wrap(many(990)), 100), name)
		assert.Equal(t, LimitMessages, exceeded(NewProtobuf("/", limits), wrap(many(1_001)), 100), name)
	}
	assert.Equal(t, LimitMessages, exceeded(NewJSON(limits), []byte(`{"resourceLogs":[`+strings.Repeat("{},", 1_000)), 100))
	assert.Empty(t, exceeded(NewJSON(limits), []byte(`{"resourceLogs":[`+strings.Repeat("{},", 999)), 100))
}

func TestChecksAreOfExportRequests(t *testing.T) {
	type ExportTraceServiceRequest struct{}
	assert.NotNil(t, NewOf(&ExportTraceServiceRequest{}, defaults))
	assert.Nil(t, NewOf(&struct{}{}, defaults))
	assert.Nil(t, NewOf(ExportTraceServiceRequest{}, defaults))
	assert.Nil(t, NewOf(nil, defaults))
}

// The memory of a check does not grow with what it reads.
func TestChecksAreBounded(t *testing.T) {
	request := otlpnest.Logs(nil, nil, otlpnest.Maps(200_000))
	check := newProtobuf(messages["logsRequest"], defaults)
	require.Equal(t, LimitDepth, exceeded(check, request, len(request)))
	assert.LessOrEqual(t, cap(check.frames), 2*(3*defaults.Depth+16))
}

// A default path tells the signal, and any other does not.
func TestPaths(t *testing.T) {
	limits := Limits{Depth: 64, Messages: 1_000_000}
	requests := map[string][]byte{
		"/v1/traces": otlpnest.Traces(nil, [][]byte{otlpnest.Attribute("k", otlpnest.Arrays(65))}),
		"/v1/logs":   otlpnest.Logs(nil, nil, otlpnest.Arrays(65)),
	}
	for path, request := range requests {
		assert.Equal(t, LimitDepth, exceeded(NewProtobuf(path, limits), request, len(request)), path)
		assert.Equal(t, LimitDepth, exceeded(NewProtobuf("/", limits), request, len(request)), path)
		assert.Equal(t, LimitDepth, exceeded(NewProtobuf(path+"/", limits), request, len(request)), path)
		assert.Empty(t, exceeded(NewProtobuf("/v1/metrics", limits), request, len(request)), path)
	}
}
