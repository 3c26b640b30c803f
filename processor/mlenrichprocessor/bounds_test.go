package mlenrichprocessor

import (
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// TestEveryIndexIsBounded sends more traces, spans, sessions, services, processes,
// runs, GPUs, answers and streams of tokens than are remembered: first many traces of
// one span, then traces of many spans.
func TestEveryIndexIsBounded(t *testing.T) {
	limits := map[string]int64{
		"answers": 32768, "epochs": 4096, "gpus": 4096, "joins": 32768, "requests": 4096, "resources": 4096, "runs": 16384,
		"spans": 65536, "streams": 32768, "traces": 32768, "trainers": 4096, "usage": 32768,
	}
	cfg := createDefaultConfig().(*Config)
	cfg.RouteByRun = true
	p := start(t, cfg)
	for _, phase := range []struct{ from, to, spans int }{{0, 34_000, 1}, {34_000, 44_000, 8}} {
		const batch = 1_000
		for from := phase.from; from < phase.to; from += batch {
			td, md := ptrace.NewTraces(), pmetric.NewMetrics()
			for i := from; i < from+batch; i++ {
				name := strconv.Itoa(i)
				rs := td.ResourceSpans().AppendEmpty()
				for _, key := range []string{"service.name", "host.name", "ml.run.id", "ml.session.id"} {
					rs.Resource().Attributes().PutStr(key, name)
				}
				rs.Resource().Attributes().PutInt("process.pid", 1)
				spans := rs.ScopeSpans().AppendEmpty().Spans()
				for span := range phase.spans {
					addCall(spans.AppendEmpty(), uint32(i+1), byte(span))
				}
				spans.AppendEmpty().Attributes().PutStr("ml.phase", "batch")
				addTokens(md.ResourceMetrics().AppendEmpty(), name)
				addGPU(md.ResourceMetrics().AppendEmpty(), name)
			}
			p.passTraces(t, []ptrace.Traces{td})
			p.passMetrics(t, []pmetric.Metrics{md})
			entries := storeMetric(t, p, "entries")
			require.Len(t, entries, len(limits), "an index without a test")
			for index, limit := range limits {
				require.LessOrEqual(t, entries[index], limit, index)
			}
		}
	}
	for index := range limits {
		assert.Positive(t, storeMetric(t, p, "evictions")[index], index)
	}
}

// addCall makes a span an epoch that reports an answer's tokens. Every second one
// is below a span that has not arrived.
func addCall(span ptrace.Span, trace uint32, number byte) {
	var traceID [16]byte
	binary.BigEndian.PutUint32(traceID[:], trace)
	span.SetTraceID(traceID)
	span.SetSpanID([8]byte{1, number})
	if number%2 == 1 {
		span.SetParentSpanID([8]byte{2, number})
	}
	span.SetName("training_epoch")
	span.SetStartTimestamp(1_700_000_000e9)
	span.SetEndTimestamp(1_700_000_001e9)
	span.Attributes().PutInt("epoch", 1)
	span.Attributes().PutInt("total_epochs", 3)
	span.Attributes().PutStr("gen_ai.response.id", strconv.Itoa(int(trace)))
	span.Attributes().PutStr("gen_ai.request.model", "m")
	span.Attributes().PutInt("gen_ai.usage.output_tokens", 5)
}

func addTokens(rm pmetric.ResourceMetrics, service string) {
	rm.Resource().Attributes().PutStr("service.name", service)
	metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("vllm:generation_tokens_total")
	sum := metric.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := sum.DataPoints().AppendEmpty()
	point.SetStartTimestamp(1_700_000_000e9)
	point.SetTimestamp(1_700_000_060e9)
	point.SetDoubleValue(5)
}

// addGPU has a run hold the memory of a GPU.
func addGPU(rm pmetric.ResourceMetrics, id string) {
	metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName(mlattr.GPUWorkloadMemory)
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetIntValue(1)
	point.Attributes().PutStr(mlattr.HardwareID, id)
	point.Attributes().PutStr(mlattr.RunID, id)
}

// storeMetric returns the values of a metric of the store, by index.
func storeMetric(t *testing.T, p *pipelines, name string) map[string]int64 {
	t.Helper()
	metric, err := p.telemetry.GetMetric("otelcol_processor_ml_enrich_store_" + name)
	require.NoError(t, err)
	values := map[string]int64{}
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		index, _ := point.Attributes.Value("index")
		values[index.AsString()] = point.Value
	}
	return values
}
