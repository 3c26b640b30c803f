package mlenrichprocessor

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// exemplarOf is a metric of a kind with one exemplar of a span of batchOf.
func exemplarOf(kind pmetric.MetricType, trace, span byte, attrs map[string]any) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "gateway")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("request.duration")
	var exemplars pmetric.ExemplarSlice
	switch kind {
	case pmetric.MetricTypeSum:
		exemplars = m.SetEmptySum().DataPoints().AppendEmpty().Exemplars()
	case pmetric.MetricTypeHistogram:
		exemplars = m.SetEmptyHistogram().DataPoints().AppendEmpty().Exemplars()
	case pmetric.MetricTypeExponentialHistogram:
		exemplars = m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Exemplars()
	default:
		exemplars = m.SetEmptyGauge().DataPoints().AppendEmpty().Exemplars()
	}
	x := exemplars.AppendEmpty()
	if trace != 0 {
		x.SetTraceID([16]byte{0: 0xa0, 15: trace})
	}
	if span != 0 {
		x.SetSpanID([8]byte{0: 0xb0, 7: span})
	}
	if err := x.FilteredAttributes().FromRaw(attrs); err != nil {
		panic(err)
	}
	return md
}

func TestExemplars(t *testing.T) {
	const long = "0123456789012345678901234567890123456789012345678901234567890123"
	for name, test := range map[string]struct {
		spans       []testSpan
		trace, span byte
		attrs, want map[string]any
	}{
		"of a span": {
			spans: []testSpan{{1, 1, 0, "call", map[string]any{"ml.session.id": "s", "ml.request.id": "r", "ml.run.id": "run"}}},
			trace: 1, span: 1,
			want: map[string]any{"ml.session.id": "s", "ml.request.id": "r", "ml.run.id": "run"},
		},
		"of a span that the trace says it of": {
			spans: []testSpan{{1, 1, 0, "call", map[string]any{"ml.session.id": "s", "ml.request.id": "r"}}},
			trace: 1, span: 9,
			want: map[string]any{"ml.session.id": "s"},
		},
		"of a trace": {
			spans: []testSpan{{1, 1, 0, "call", map[string]any{"ml.session.id": "s"}}},
			trace: 1,
			want:  map[string]any{"ml.session.id": "s"},
		},
		"of one of two sessions": {
			spans: twoSessions,
			trace: 2, span: 4,
			want: map[string]any{"ml.session.id": "a", "ml.request.id": "ra"},
		},
		"of a trace with two sessions": {spans: twoSessions, trace: 2, span: 1, want: map[string]any{}},
		"of a trace that nobody knows": {spans: twoSessions, trace: 7, span: 1, want: map[string]any{}},
		"of no trace":                  {spans: twoSessions, span: 4, want: map[string]any{}},
		"with keys of its own": {
			spans: []testSpan{{1, 1, 0, "call", map[string]any{"ml.session.id": "s", "ml.request.id": "r"}}},
			trace: 1, span: 1,
			attrs: map[string]any{"ml.session.id": "mine", "user": "u"},
			want:  map[string]any{"ml.session.id": "mine", "user": "u", "ml.request.id": "r"},
		},
		"with room for the session only": {
			spans: []testSpan{{1, 1, 0, "call", map[string]any{"ml.session.id": long[:36], "ml.request.id": long[:36], "ml.run.id": long[:8]}}},
			trace: 1, span: 1,
			want: map[string]any{"ml.session.id": long[:36]},
		},
		"with room for what is short only": {
			spans: []testSpan{{1, 1, 0, "call", map[string]any{"ml.session.id": long, "ml.run.id": "run"}}},
			trace: 1, span: 1,
			want: map[string]any{"ml.run.id": "run"},
		},
		"without room": {
			spans: []testSpan{{1, 1, 0, "call", map[string]any{"ml.session.id": "s"}}},
			trace: 1, span: 1,
			attrs: map[string]any{"note": long},
			want:  map[string]any{"note": long},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []pmetric.MetricType{pmetric.MetricTypeGauge, pmetric.MetricTypeSum, pmetric.MetricTypeHistogram, pmetric.MetricTypeExponentialHistogram} {
				p := startDefault(t)
				p.sendTraces(t, batchOf("gateway", test.spans...))
				out := p.sendMetrics(t, exemplarOf(kind, test.trace, test.span, test.attrs))
				got := exemplarMaps(out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0))
				require.Len(t, got, 1)
				assert.Equal(t, test.want, got[0].AsRaw(), kind)
			}
		})
	}
}

// TestExemplarDoesNotRepeatItsPoint has a run that the point has as a label.
func TestExemplarDoesNotRepeatItsPoint(t *testing.T) {
	p := startDefault(t)
	p.sendTraces(t, batchOf("gateway", testSpan{1, 1, 0, "call", map[string]any{"ml.session.id": "s", "ml.run.id": "run"}}))
	md := exemplarOf(pmetric.MetricTypeGauge, 1, 1, nil)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("ml.run.id", "run")
	m := p.sendMetrics(t, md).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	assert.Equal(t, map[string]any{"ml.session.id": "s"}, exemplarMaps(m)[0].AsRaw())
	assert.Equal(t, map[string]any{"ml.run.id": "run"}, m.Gauge().DataPoints().At(0).Attributes().AsRaw())
}

// TestInferredRunOfExemplar has a run that nobody named come over a request.
func TestInferredRunOfExemplar(t *testing.T) {
	p := startDefault(t)
	caller := batchOf("snakepit", testSpan{1, 1, 0, "snakepit.grpc.infer", map[string]any{"snakepit.correlation_id": "c-1"}})
	caller.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
	p.sendTraces(t, caller)
	p.sendTraces(t, batchOf("snakepit.python.bridge", testSpan{2, 1, 0, "BridgeService/ExecuteTool", map[string]any{"snakepit.correlation_id": "c-1"}}))

	run := func(attrs map[string]any) map[string]any {
		md := p.sendMetrics(t, exemplarOf(pmetric.MetricTypeSum, 2, 1, attrs))
		return exemplarMaps(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0))[0].AsRaw()
	}
	got := run(nil)
	assert.NotEmpty(t, got["ml.run.id"])
	assert.Equal(t, true, got["ml.run.inferred"])
	assert.Equal(t, map[string]any{"ml.run.inferred": false, "ml.request.id": "c-1"}, run(map[string]any{"ml.run.inferred": false}),
		"a mark by another hand is left alone")
}

// TestExemplarTextCountsCharacters has text of which bytes are more.
func TestExemplarTextCountsCharacters(t *testing.T) {
	p := startDefault(t)
	p.sendTraces(t, batchOf("gateway", testSpan{1, 1, 0, "call", map[string]any{"ml.session.id": "s"}}))
	note := strings.Repeat("é", 128-len("trace_id")-32-len("span_id")-16-len("note")-len("ml.session.id")-len("s"))
	md := p.sendMetrics(t, exemplarOf(pmetric.MetricTypeGauge, 1, 1, map[string]any{"note": note}))
	assert.Equal(t, map[string]any{"note": note, "ml.session.id": "s"}, exemplarMaps(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0))[0].AsRaw())
	require.Greater(t, len(note), utf8.RuneCountInString(note))
}
