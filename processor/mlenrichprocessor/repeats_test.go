package mlenrichprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// scrape is what was read of a vLLM server: histograms and counters by name,
// each with one sum.
func scrape(server string, s float64, sums map[string]float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", server)
	at := pcommon.Timestamp(t0 + uint64(s*1e9))
	for name, sum := range sums {
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		switch name {
		case "vllm:prompt_tokens_total", "vllm:generation_tokens_total":
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := m.Sum().DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			p.SetDoubleValue(sum)
		default:
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := m.Histogram().DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			p.SetCount(uint64(s) + 1)
			p.SetSum(sum)
		}
	}
	return md
}

// TestRepeatedMetrics shows of which metrics the rates are made, by what a
// server sends together.
func TestRepeatedMetrics(t *testing.T) {
	const (
		prompt, generation               = "vllm:prompt_tokens_total", "vllm:generation_tokens_total"
		requestPrompt, requestGeneration = "vllm:request_prompt_tokens", "vllm:request_generation_tokens"
		iteration                        = "vllm:iteration_tokens_total"
	)
	for name, tt := range map[string]struct{ sent, rated []string }{
		"all":                           {[]string{prompt, generation, requestPrompt, requestGeneration, iteration}, []string{prompt, generation}},
		"the counters alone":            {[]string{prompt, generation}, []string{prompt, generation}},
		"the requests alone":            {[]string{requestPrompt, requestGeneration}, []string{requestPrompt, requestGeneration}},
		"no counters":                   {[]string{requestPrompt, requestGeneration, iteration}, []string{requestPrompt, requestGeneration}},
		"the engine's steps alone":      {[]string{iteration}, []string{iteration}},
		"one counter":                   {[]string{generation, requestPrompt, requestGeneration}, []string{generation, requestPrompt}},
		"one histogram and the steps":   {[]string{requestPrompt, iteration}, []string{requestPrompt}},
		"a counter and the steps":       {[]string{generation, iteration}, []string{generation}},
		"the other counter's histogram": {[]string{prompt, requestGeneration}, []string{prompt, requestGeneration}},
	} {
		t.Run(name, func(t *testing.T) {
			p := startDefault(t)
			send := func(s, sum float64) map[string]float64 {
				sums := make(map[string]float64)
				for _, metric := range tt.sent {
					sums[metric] = sum
				}
				return throughputs(p.sendMetrics(t, scrape("a", s, sums)), "ml.throughput.metric")
			}
			want := make(map[string]float64)
			for _, metric := range tt.rated {
				want[metric] = 50
			}
			assert.Empty(t, send(0, 1000))
			assert.Equal(t, want, send(60, 4000))
			assert.Equal(t, want, send(120, 7000))
		})
	}
}

// TestRepeatedMetricsOfSeveralRequests shows that what a server sends in one
// request is known in the next, for as long as it sends it, and of no other
// server.
func TestRepeatedMetricsOfSeveralRequests(t *testing.T) {
	r := newRig(t)
	send := func(server string, metric string, s, sum float64) map[string]float64 {
		md := scrape(server, s, map[string]float64{metric: sum})
		out, err := r.e.processMetrics(t.Context(), md)
		require.NoError(t, err)
		return throughputs(out, "ml.throughput.metric")
	}
	const counter, histogram = "vllm:generation_tokens_total", "vllm:request_generation_tokens"
	assert.Empty(t, send("a", histogram, 0, 1000), "the first has no rate, so that its counter may come after it")
	assert.Empty(t, send("a", counter, 0, 1000))
	assert.Empty(t, send("a", histogram, 60, 4000))
	assert.Equal(t, map[string]float64{counter: 50}, send("a", counter, 60, 4000))
	assert.Empty(t, send("b", histogram, 0, 1000))
	assert.Equal(t, map[string]float64{histogram: 50}, send("b", histogram, 60, 4000), "another server")

	for range 4 {
		r.c.at = r.c.at.Add(15 * time.Minute / 4)
		assert.Empty(t, send("a", histogram, 120, 7000))
	}
	r.c.at = r.c.at.Add(time.Second)
	assert.Empty(t, send("a", histogram, 180, 10_000), "it begins anew")
	assert.Equal(t, map[string]float64{histogram: 50}, send("a", histogram, 240, 13_000), "the counter is not sent any more")
}
