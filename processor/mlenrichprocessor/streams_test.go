package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// t0 is the time of the first point, in nanoseconds.
const t0 = uint64(1_700_000_000_000_000_000)

// counterBatch is one point of a vLLM server's counter.
func counterBatch(model string, s, value float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:generation_tokens_total")
	m.SetEmptySum().SetIsMonotonic(true)
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := m.Sum().DataPoints().AppendEmpty()
	p.Attributes().PutStr("model_name", model)
	p.SetTimestamp(pcommon.Timestamp(t0 + uint64(s*1e9)))
	p.SetDoubleValue(value)
	return md
}

// throughputs returns what was added, by the values of an attribute.
func throughputs(md pmetric.Metrics, by string) map[string]float64 {
	found := make(map[string]float64)
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != "ml.token.throughput" {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					text := ""
					if value, ok := p.Attributes().Get(by); ok {
						text = value.AsString()
					}
					found[text] = p.DoubleValue()
				}
			}
		}
	}
	return found
}

func TestThroughputOverBatches(t *testing.T) {
	p := startDefault(t)
	send := func(model string, s, value float64) map[string]float64 {
		return throughputs(p.sendMetrics(t, counterBatch(model, s, value)), "model_name")
	}
	assert.Empty(t, send("a", 0, 1000))
	assert.Empty(t, send("b", 0, 9000), "another stream")
	assert.Equal(t, map[string]float64{"a": 50}, send("a", 60, 4000))
	assert.Empty(t, send("a", 120, 200), "a reset")
	assert.Empty(t, send("a", 90, 300), "out of order")
	assert.Equal(t, map[string]float64{"a": 10}, send("a", 180, 800))
	assert.Equal(t, map[string]int64{"counter_reset": 1, "out_of_order": 1}, p.skips(t))
}

// TestThroughputOfWhatWasEnriched shows that an ml_enrich behind another adds
// no second rate, whatever it has seen before.
func TestThroughputOfWhatWasEnriched(t *testing.T) {
	agent, gateway := startDefault(t), startDefault(t)
	gateway.sendMetrics(t, agent.sendMetrics(t, counterBatch("a", 0, 1000)))
	enriched := agent.sendMetrics(t, counterBatch("a", 60, 4000))
	assert.Equal(t, 2, enriched.DataPointCount())
	assert.Equal(t, enriched, gateway.sendMetrics(t, enriched))
}

// TestThroughputLabelsDoNotCollide shows that a client's label stands alone
// where Prometheus would give the added one the same name.
func TestThroughputLabelsDoNotCollide(t *testing.T) {
	p := startDefault(t)
	var out pmetric.Metrics
	for i, value := range []float64{1000, 4000} {
		in := counterBatch("a", float64(i)*60, value)
		in.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Attributes().PutStr("gen_ai_token_type", "mine")
		out = p.sendMetrics(t, in)
	}
	assert.Equal(t, map[string]float64{"mine": 50}, throughputs(out, "gen_ai_token_type"))
	assert.Equal(t, map[string]float64{"": 50}, throughputs(out, "gen_ai.token.type"))
}
