package request

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

// depth is the number of arrays and maps in v that enclose one another.
func depth(v pcommon.Value) (levels int) {
	switch v.Type() {
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			levels = max(levels, depth(element))
		}
	case pcommon.ValueTypeMap:
		levels = depthOf(v.Map())
	default:
		return 0
	}
	return levels + 1
}

func depthOf(m pcommon.Map) (levels int) {
	for _, v := range m.All() {
		levels = max(levels, depth(v))
	}
	return levels
}

func depthOfTraces(td ptrace.Traces) (levels int) {
	for _, rs := range td.ResourceSpans().All() {
		levels = max(levels, depthOf(rs.Resource().Attributes()))
		for _, ss := range rs.ScopeSpans().All() {
			levels = max(levels, depthOf(ss.Scope().Attributes()))
			for _, span := range ss.Spans().All() {
				levels = max(levels, depthOf(span.Attributes()))
				for _, event := range span.Events().All() {
					levels = max(levels, depthOf(event.Attributes()))
				}
				for _, link := range span.Links().All() {
					levels = max(levels, depthOf(link.Attributes()))
				}
			}
		}
	}
	return levels
}

func depthOfLogs(ld plog.Logs) (levels int) {
	for _, rl := range ld.ResourceLogs().All() {
		levels = max(levels, depthOf(rl.Resource().Attributes()))
		for _, sl := range rl.ScopeLogs().All() {
			levels = max(levels, depthOf(sl.Scope().Attributes()))
			for _, record := range sl.LogRecords().All() {
				levels = max(levels, depthOf(record.Attributes()), depth(record.Body()))
			}
		}
	}
	return levels
}

func depthOfExemplars(exemplars pmetric.ExemplarSlice) (levels int) {
	for _, exemplar := range exemplars.All() {
		levels = max(levels, depthOf(exemplar.FilteredAttributes()))
	}
	return levels
}

func depthOfMetric(m pmetric.Metric) (levels int) {
	levels = depthOf(m.Metadata())
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, point := range m.Gauge().DataPoints().All() {
			levels = max(levels, depthOf(point.Attributes()), depthOfExemplars(point.Exemplars()))
		}
	case pmetric.MetricTypeSum:
		for _, point := range m.Sum().DataPoints().All() {
			levels = max(levels, depthOf(point.Attributes()), depthOfExemplars(point.Exemplars()))
		}
	case pmetric.MetricTypeHistogram:
		for _, point := range m.Histogram().DataPoints().All() {
			levels = max(levels, depthOf(point.Attributes()), depthOfExemplars(point.Exemplars()))
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, point := range m.ExponentialHistogram().DataPoints().All() {
			levels = max(levels, depthOf(point.Attributes()), depthOfExemplars(point.Exemplars()))
		}
	case pmetric.MetricTypeSummary:
		for _, point := range m.Summary().DataPoints().All() {
			levels = max(levels, depthOf(point.Attributes()))
		}
	default:
	}
	return levels
}

func depthOfMetrics(md pmetric.Metrics) (levels int) {
	for _, rm := range md.ResourceMetrics().All() {
		levels = max(levels, depthOf(rm.Resource().Attributes()))
		for _, sm := range rm.ScopeMetrics().All() {
			levels = max(levels, depthOf(sm.Scope().Attributes()))
			for _, m := range sm.Metrics().All() {
				levels = max(levels, depthOfMetric(m))
			}
		}
	}
	return levels
}

// signal is how the fuzz tests decode one.
type signal struct {
	name string
	root *message
	// decode returns the depth of a request, and the request as it is encoded
	// again.
	decode func(request []byte) (levels int, again []byte, err error)
	// hold returns what a request is decoded to.
	hold     func(request []byte) any
	holdJSON func(request []byte) any
	// json encodes a request as JSON.
	json func(request []byte) ([]byte, error)
}

var ofSignals = []signal{
	{"traces", messages["tracesRequest"], func(b []byte) (int, []byte, error) {
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalProto(b); err != nil {
			return 0, nil, err
		}
		again, err := request.MarshalProto()
		return depthOfTraces(request.Traces()), again, err
	}, func(b []byte) any {
		request := ptraceotlp.NewExportRequest()
		return []any{request.UnmarshalProto(b), request}
	}, func(b []byte) any {
		request := ptraceotlp.NewExportRequest()
		return []any{request.UnmarshalJSON(b), request}
	}, func(b []byte) ([]byte, error) {
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalProto(b); err != nil {
			return nil, err
		}
		return request.MarshalJSON()
	}},
	{"metrics", messages["metricsRequest"], func(b []byte) (int, []byte, error) {
		request := pmetricotlp.NewExportRequest()
		if err := request.UnmarshalProto(b); err != nil {
			return 0, nil, err
		}
		again, err := request.MarshalProto()
		return depthOfMetrics(request.Metrics()), again, err
	}, func(b []byte) any {
		request := pmetricotlp.NewExportRequest()
		return []any{request.UnmarshalProto(b), request}
	}, func(b []byte) any {
		request := pmetricotlp.NewExportRequest()
		return []any{request.UnmarshalJSON(b), request}
	}, func(b []byte) ([]byte, error) {
		request := pmetricotlp.NewExportRequest()
		if err := request.UnmarshalProto(b); err != nil {
			return nil, err
		}
		return request.MarshalJSON()
	}},
	{"logs", messages["logsRequest"], func(b []byte) (int, []byte, error) {
		request := plogotlp.NewExportRequest()
		if err := request.UnmarshalProto(b); err != nil {
			return 0, nil, err
		}
		again, err := request.MarshalProto()
		return depthOfLogs(request.Logs()), again, err
	}, func(b []byte) any {
		request := plogotlp.NewExportRequest()
		return []any{request.UnmarshalProto(b), request}
	}, func(b []byte) any {
		request := plogotlp.NewExportRequest()
		return []any{request.UnmarshalJSON(b), request}
	}, func(b []byte) ([]byte, error) {
		request := plogotlp.NewExportRequest()
		if err := request.UnmarshalProto(b); err != nil {
			return nil, err
		}
		return request.MarshalJSON()
	}},
}

// FuzzProtobuf: no check passes what the decoder finds deeper than the limit, and
// none refuses a request that an encoder made and that is within it.
func FuzzProtobuf(f *testing.F) {
	for _, request := range positions() {
		v := pcommon.NewValueEmpty()
		otlpnest.Value(v, 5)
		protobuf, _ := request(v)
		f.Add(protobuf, uint8(4), uint8(3))
		f.Add(append([]byte{1<<3 | 3}, protobuf...), uint8(5), uint8(1))
	}
	f.Fuzz(func(t *testing.T, request []byte, limit, size uint8) {
		limits := Limits{Depth: int(limit), Messages: 1 << 20}
		for _, s := range ofSignals {
			got := exceeded(newProtobuf(s.root, limits), request, int(size)+1)
			levels, again, err := s.decode(request)
			if err != nil {
				continue
			}
			if levels > limits.Depth && got != LimitDepth {
				t.Errorf("%s: %d levels pass a limit of %d: %x", s.name, levels, limits.Depth, request)
			}
			encoded := exceeded(newProtobuf(s.root, limits), again, int(size)+1)
			if (levels > limits.Depth) != (encoded == LimitDepth) {
				t.Errorf("%s: %d levels, a limit of %d, exceeded %q: %x", s.name, levels, limits.Depth, encoded, again)
			}
		}
		exceeded(NewProtobuf("/", limits), request, int(size)+1)
	})
}

// FuzzJSON: no check passes what the decoder finds deeper than four thirds of the
// limit, and none refuses a request that is within it.
func FuzzJSON(f *testing.F) {
	for _, request := range positions() {
		v := pcommon.NewValueEmpty()
		otlpnest.Value(v, 5)
		_, json := request(v)
		f.Add(json, uint8(4), uint8(3))
	}
	f.Add([]byte(`{"resourceLogs":[{"resource":{"attributes":[{"key":"\"{[","value":{"stringValue":"{{{{\\"}}]}}]}`), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, body []byte, limit, size uint8) {
		limits := Limits{Depth: int(limit), Messages: 1 << 20}
		got := exceeded(NewJSON(limits), body, int(size)+1)
		request := plogotlp.NewExportRequest()
		if request.UnmarshalJSON(body) != nil {
			return
		}
		if levels := depthOfLogs(request.Logs()); levels*3 > limits.Depth*bracketsPerLevel+bracketsAround && got != LimitDepth {
			t.Errorf("%d levels pass a limit of %d: %s", levels, limits.Depth, body)
		}
		again, err := request.MarshalJSON()
		if err != nil {
			return
		}
		if levels := depthOfLogs(request.Logs()); levels <= limits.Depth && exceeded(NewJSON(limits), again, int(size)+1) != "" {
			t.Errorf("%d levels, a limit of %d: refused: %s", levels, limits.Depth, again)
		}
	})
}

// FuzzParts: a check says the same of a request in one part and byte by byte.
func FuzzParts(f *testing.F) {
	for _, request := range positions() {
		v := pcommon.NewValueEmpty()
		otlpnest.Value(v, 5)
		protobuf, _ := request(v)
		for _, limit := range []uint8{1, 4, 20, 255} {
			f.Add(protobuf, uint8(9), limit)
			f.Add(append([]byte{1<<3 | 3}, protobuf...), uint8(3), limit)
			f.Add(append([]byte{0x0a, 0x80, 0}, protobuf[:len(protobuf)/2]...), uint8(4), limit)
		}
	}
	f.Fuzz(func(t *testing.T, request []byte, depth, number uint8) {
		limits := Limits{Depth: int(depth), Messages: int(number)}
		for _, s := range ofSignals {
			whole, single := newProtobuf(s.root, limits), newProtobuf(s.root, limits)
			whole.Write(request)
			for i := range request {
				single.Write(request[i : i+1])
			}
			assert.Equal(t, single.frames, whole.frames)
			for _, p := range []*Protobuf{whole, single} {
				p.frames, p.first, p.field = nil, [32]frame{}, 0 // the last is of a field that is over
			}
			assert.Equal(t, single, whole)
		}
	})
}
