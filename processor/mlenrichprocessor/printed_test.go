package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// printedLines are two steps and the failure of a program of which a file tells.
func printedLines(t *testing.T, attrs map[string]any) ptrace.Traces {
	t.Helper()
	td := batchOf("python", testSpan{9, 1, 0, "train_step", map[string]any{"ml.phase": "batch", "ml.step": 1}},
		testSpan{9, 2, 0, "train_step", map[string]any{"ml.phase": "batch", "ml.step": 2}}, testSpan{9, 3, 0, "train", map[string]any{"ml.phase": "train"}})
	rs := td.ResourceSpans().At(0)
	rs.ScopeSpans().At(0).Scope().SetName("github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector")
	rs.ScopeSpans().At(0).Spans().At(2).Status().SetCode(ptrace.StatusCodeError)
	put(t, rs.Resource().Attributes(), map[string]any{"host.name": "n1", "ml.run.id": "train-2d7aa940", "ml.run.inferred": true}, attrs)
	return td
}

func put(t *testing.T, to pcommon.Map, all ...map[string]any) {
	t.Helper()
	for _, attrs := range all {
		for key, value := range attrs {
			require.NoError(t, to.PutEmpty(key).FromRaw(value))
		}
	}
}

// A program that sends its steps and prints them has one run, whose steps count once. What
// only its lines tell stays: that it failed.
func TestPrintedLinesGiveWay(t *testing.T) {
	type attrs = map[string]any
	job, pod := "4711", "11111111-2222-3333-4444-555555555555"
	for name, tt := range map[string]struct {
		sent, printed attrs
		run           string
		spans         int
	}{
		"the same process":       {attrs{"host.name": "n1", "process.pid": 42}, attrs{"process.pid": 42}, "own", 1},
		"the same container":     {attrs{"container.id": "c1"}, attrs{"container.id": "c1"}, "own", 1},
		"the same pod":           {attrs{"k8s.pod.uid": pod}, attrs{"k8s.pod.uid": pod}, "own", 1},
		"the same job":           {attrs{"slurm.job.id": job}, attrs{"slurm.job.id": job}, "own", 1},
		"another process":        {attrs{"host.name": "n1", "process.pid": 43}, attrs{"process.pid": 42}, "train-2d7aa940", 3},
		"the process of another": {attrs{"host.name": "n2", "process.pid": 42}, attrs{"process.pid": 42}, "train-2d7aa940", 3},
		"the run by its id":      {attrs{}, attrs{"ml.run.id": "own", "ml.run.inferred": false}, "own", 1},
		"nothing in common":      {attrs{}, attrs{}, "train-2d7aa940", 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := startDefault(t)
			before := p.sendTraces(t, printedLines(t, tt.printed))
			assert.Equal(t, 3, before.SpanCount(), "nobody else tells of them yet")
			own := batchOf("trainer", testSpan{1, 1, 0, "step", attrs{"ml.phase": "batch"}})
			put(t, own.ResourceSpans().At(0).Resource().Attributes(), attrs{"ml.run.id": "own"}, tt.sent)
			p.sendTraces(t, own)

			out := p.sendTraces(t, printedLines(t, tt.printed))
			assert.Equal(t, tt.spans, out.SpanCount())
			run, _ := out.ResourceSpans().At(0).Resource().Attributes().Get("ml.run.id")
			assert.Equal(t, tt.run, run.Str())
			spans := out.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
			assert.Equal(t, "train", spans.At(spans.Len()-1).Name())
		})
	}
}

// Steps of which no span tells stay, under the run of the program's metrics.
func TestPrintedLinesOfAProgramWithMetrics(t *testing.T) {
	p := startDefault(t)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	put(t, rm.Resource().Attributes(), map[string]any{"container.id": "c1", "ml.run.id": "own", "service.name": "trainer"})
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("axolotl_train_loss")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(2)
	p.sendMetrics(t, md)
	out := p.sendTraces(t, printedLines(t, map[string]any{"container.id": "c1"}))
	assert.Equal(t, 3, out.SpanCount())
	run, _ := out.ResourceSpans().At(0).Resource().Attributes().Get("ml.run.id")
	assert.Equal(t, "own", run.Str())
}

// Where two runs are, nobody knows of which one the lines are.
func TestPrintedLinesOfOneOfTwo(t *testing.T) {
	p := startDefault(t)
	for _, id := range []string{"one", "two"} {
		own := batchOf("trainer", testSpan{1, 1, 0, "step", map[string]any{"ml.phase": "batch"}})
		put(t, own.ResourceSpans().At(0).Resource().Attributes(), map[string]any{"ml.run.id": id, "container.id": "c1"})
		p.sendTraces(t, own)
	}
	out := p.sendTraces(t, printedLines(t, map[string]any{"container.id": "c1"}))
	assert.Equal(t, 3, out.SpanCount())
}

// A request of which nothing is left goes no further.
func TestPrintedLinesOnly(t *testing.T) {
	p := startDefault(t)
	own := batchOf("trainer", testSpan{1, 1, 0, "step", map[string]any{"ml.phase": "batch"}})
	put(t, own.ResourceSpans().At(0).Resource().Attributes(), map[string]any{"ml.run.id": "own", "container.id": "c1"})
	p.sendTraces(t, own)
	td := printedLines(t, map[string]any{"container.id": "c1"})
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(2).Status().SetCode(ptrace.StatusCodeUnset)
	p.tracesOut.Reset()
	require.NoError(t, p.traces.ConsumeTraces(t.Context(), td))
	assert.Empty(t, p.tracesOut.AllTraces())
	dropped, err := p.telemetry.GetMetric("otelcol_processor_ml_enrich_printed_spans_dropped")
	require.NoError(t, err)
	assert.NotNil(t, dropped)
}

// The GPU of the process that writes a file is that of the run of its lines.
func TestGPUOfAPrintingProcess(t *testing.T) {
	p := startDefault(t)
	p.sendTraces(t, printedLines(t, map[string]any{"process.pid": 42, "process.creation.time": "2026-11-28T12:00:00.25Z"}))
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	put(t, rm.Resource().Attributes(), map[string]any{"host.name": "n1"})
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("nvidia.gpu.process.memory.usage")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetIntValue(1 << 30)
	put(t, point.Attributes(), map[string]any{"hw.id": "GPU-1", "process.pid": 42, "process.creation.time": "2026-11-28T12:00:00.25Z"})
	out := p.sendMetrics(t, md).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
	assert.Equal(t, "train-2d7aa940", readID(out.Attributes(), "ml.run.id"))
	assert.Equal(t, "process", readID(out.Attributes(), "ml.gpu.join"))
}
