package mlenrichprocessor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// t0 is the time of the first point, in nanoseconds.
const t0 = uint64(1_700_000_000_000_000_000)

// after is a cumulative counter's point, so many seconds after t0.
func after(s, sum float64) reading {
	return reading{start: t0 - 1, at: t0 + uint64(s*1e9), sum: sum}
}

func TestStreamRates(t *testing.T) {
	type gained struct {
		rate   float64
		ok     bool
		reason skip
	}
	none := gained{}
	counted := func(s, sum float64, n uint64) reading {
		r := after(s, sum)
		r.count = n
		return r
	}
	mean := func(s, sum float64, n uint64) reading {
		r := counted(s, sum, n)
		r.mean = true
		return r
	}
	delta := func(from, to, sum float64) reading {
		return reading{start: t0 + uint64(from*1e9), at: t0 + uint64(to*1e9), sum: sum, delta: true}
	}
	restarted := after(120, 5000)
	restarted.start = t0 + 90e9
	bad := func(sum float64) reading { return after(60, sum) }
	noTime := after(0, 4000)
	noTime.at = 0
	noStart := delta(0, 60, 3000)
	noStart.start = 0
	tests := map[string]struct {
		points []reading
		want   []gained
	}{
		"golden vector: a counter, then its reset": {
			[]reading{after(0, 1000), after(60, 4000), after(120, 200), after(180, 800)},
			[]gained{none, {50, true, ""}, {0, false, skipReset}, {10, true, ""}},
		},
		"golden vector: a histogram's sum": {
			[]reading{counted(0, 500, 5), counted(30, 2300, 9)},
			[]gained{none, {60, true, ""}},
		},
		"a counter that stands still": {
			[]reading{after(0, 7), after(60, 7)}, []gained{none, {0, true, ""}},
		},
		"the first point alone": {[]reading{after(0, 1000)}, []gained{none}},
		"the same point twice":  {[]reading{after(0, 1000), after(0, 1000), after(60, 4000)}, []gained{none, none, {50, true, ""}}},
		"a point that is late": {
			[]reading{after(0, 1000), after(60, 4000), after(30, 2000), after(120, 7000)},
			[]gained{none, {50, true, ""}, {0, false, skipOutOfOrder}, {50, true, ""}},
		},
		"another value of the same time": {
			[]reading{after(0, 1000), after(0, 2000), after(60, 4000)},
			[]gained{none, {0, false, skipOutOfOrder}, {50, true, ""}},
		},
		"a restart that its start tells": {
			[]reading{after(0, 1000), restarted, after(180, 5600)},
			[]gained{none, {0, false, skipReset}, {10, true, ""}},
		},
		"a histogram with fewer values than before": {
			[]reading{counted(0, 500, 5), counted(30, 600, 1)},
			[]gained{none, {0, false, skipReset}},
		},
		"points too close": {
			[]reading{after(0, 1000), after(0.0005, 1001), after(60, 4000)},
			[]gained{none, {0, false, skipShortDuration}, {50, true, ""}},
		},
		"a histogram of rates gained two": {
			[]reading{mean(0, 100, 2), mean(60, 180, 4)}, []gained{none, {40, true, ""}},
		},
		"a histogram of rates gained none": {
			[]reading{mean(0, 100, 2), mean(60, 100, 2)}, []gained{none, none},
		},
		"a delta, and no memory of it": {
			[]reading{delta(0, 60, 3000), delta(0, 60, 3000), delta(60, 90, 300)},
			[]gained{{50, true, ""}, {50, true, ""}, {10, true, ""}},
		},
		"a delta of no time":            {[]reading{delta(60, 60, 3000)}, []gained{{0, false, skipNegativeDuration}}},
		"a delta that ends first":       {[]reading{delta(60, 0, 3000)}, []gained{{0, false, skipNegativeDuration}}},
		"a delta of nobody knows when":  {[]reading{noStart}, []gained{{0, false, skipInvalidValue}}},
		"a value that is no number":     {[]reading{after(0, 1000), bad(math.NaN()), after(60, 4000)}, []gained{none, {0, false, skipInvalidValue}, {50, true, ""}}},
		"a value without end":           {[]reading{after(0, 1000), bad(math.Inf(1)), after(60, 4000)}, []gained{none, {0, false, skipInvalidValue}, {50, true, ""}}},
		"a counter below zero":          {[]reading{after(0, 1000), bad(-1), after(60, 4000)}, []gained{none, {0, false, skipInvalidValue}, {50, true, ""}}},
		"a point without a time":        {[]reading{after(0, 1000), noTime, after(60, 4000)}, []gained{none, {0, false, skipInvalidValue}, {50, true, ""}}},
		"more than a double can divide": {[]reading{after(0, 0), after(0.5, math.MaxFloat64)}, []gained{none, {0, false, skipInvalidValue}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stream newest
			var got []gained
			for _, point := range tt.points {
				rate, ok, reason := stream.rate(point, 0.001)
				got = append(got, gained{rate, ok, reason})
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

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

// TestThroughputInTwoPipelines shows that each of two pipelines gets the rates
// of what both receive, though they share a store.
func TestThroughputInTwoPipelines(t *testing.T) {
	s, _ := newTestStore(t)
	for range 2 {
		instance := s.addInstance()
		var rates []float64
		for _, point := range []reading{after(0, 1000), after(60, 4000)} {
			points := []tokenPoint{{reading: point, key: streamKey{instance: instance}}}
			s.advance(points, 0.001, skipped{})
			rates = append(rates, points[0].rate)
		}
		assert.Equal(t, []float64{0, 50}, rates)
	}
}

func TestStreamsAreBoundedAndForgotten(t *testing.T) {
	s, c := newTestStore(t)
	send := func(n int, at float64) bool {
		points := []tokenPoint{{reading: after(at, at), key: streamKey{hash: [16]byte{byte(n >> 16), byte(n >> 8), byte(n)}}}}
		s.advance(points, 0.001, skipped{})
		return points[0].rated
	}
	for i := range maxStreams + 100 {
		send(i, 0)
	}
	assert.Equal(t, maxStreams, s.streams.len())
	assert.EqualValues(t, 100, s.streams.evicted)
	assert.True(t, send(maxStreams, 60))
	assert.False(t, send(0, 60), "the first went, and begins anew")
	c.at = c.at.Add(keyAge + time.Second)
	assert.False(t, send(maxStreams, 1000), "what was not heard of for so long has no rate")

	before := s.streams.len()
	bad := []tokenPoint{{reading: after(0, math.NaN()), key: streamKey{instance: 9}}, {reading: reading{start: t0, at: t0 + 1e9, sum: 1, delta: true}, key: streamKey{instance: 8}}}
	s.advance(bad, 0.001, skipped{})
	assert.Equal(t, before, s.streams.len(), "what needs no memory gets none")
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
