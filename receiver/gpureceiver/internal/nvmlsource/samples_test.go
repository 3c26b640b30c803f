package nvmlsource

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// second is a second of the driver's time.
const second = 1_000_000

func TestSampleHistory(t *testing.T) {
	type reading struct {
		samples  []sample
		expected sampleSummary
		found    bool
		// total and since are those after the reading.
		total float64
		since uint64
	}
	for name, readings := range map[string][]reading{
		"none": {{}},
		"the first reading begins the integral": {
			{[]sample{{1 * second, 20}, {2 * second, 40}}, sampleSummary{mean: 30, peak: 40}, true, 0, 2 * second},
			{[]sample{{2 * second, 40}, {3 * second, 60}}, sampleSummary{mean: 60, peak: 60, integral: 60}, true, 60, 3 * second},
		},
		"each sample counts for the time since the one before": {
			{[]sample{{second, 50}}, sampleSummary{mean: 50, peak: 50}, true, 0, second},
			{[]sample{{1.25 * second, 100}, {1.5 * second, 0}, {2.5 * second, 50}}, sampleSummary{mean: 50, peak: 100, integral: 75}, true, 75, 2.5 * second},
		},
		"a gap that the buffer did not hold is not invented": {
			{[]sample{{second, 50}}, sampleSummary{mean: 50, peak: 50}, true, 0, second},
			{[]sample{{60 * second, 100}, {61 * second, 100}}, sampleSummary{mean: 100, peak: 100, integral: 100}, true, 100, 61 * second},
		},
		"nothing new asks for all the next time": {
			{[]sample{{second, 50}}, sampleSummary{mean: 50, peak: 50}, true, 0, second},
			{nil, sampleSummary{}, false, 0, 0},
			{[]sample{{second, 50}, {2 * second, 10}}, sampleSummary{mean: 10, peak: 10, integral: 10}, true, 10, 2 * second},
		},
		"a clock that was set back begins again and keeps the total": {
			{[]sample{{100 * second, 50}}, sampleSummary{mean: 50, peak: 50}, true, 0, 100 * second},
			{[]sample{{101 * second, 50}}, sampleSummary{mean: 50, peak: 50, integral: 50}, true, 50, 101 * second},
			{nil, sampleSummary{}, false, 50, 0},
			{[]sample{{10 * second, 80}}, sampleSummary{mean: 80, peak: 80}, true, 50, 10 * second},
			{[]sample{{11 * second, 20}}, sampleSummary{mean: 20, peak: 20, integral: 20}, true, 70, 11 * second},
		},
		"unused entries at the end": {
			{[]sample{{second, 20}, {0, 0}, {0, 0}}, sampleSummary{mean: 20, peak: 20}, true, 0, second},
		},
		"garbage": {
			{[]sample{{second, 808334905}, {2 * second, 50}, {3 * second, -1}, {4 * second, math.NaN()}}, sampleSummary{mean: 50, peak: 50}, true, 0, 2 * second},
		},
		"out of order": {
			{[]sample{{3 * second, 10}, {2 * second, 30}}, sampleSummary{mean: 20, peak: 30}, true, 0, 3 * second},
		},
		"twice the same": {
			{[]sample{{second, 10}, {second, 30}}, sampleSummary{mean: 10, peak: 10}, true, 0, second},
		},
		"idle is a value": {
			{[]sample{{second, 0}}, sampleSummary{}, true, 0, second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h sampleHistory
			for _, r := range readings {
				summary, found := h.add(r.samples, 100)
				assert.Equal(t, r.found, found)
				assert.InDelta(t, r.expected.mean, summary.mean, 1e-9)
				assert.InDelta(t, r.expected.peak, summary.peak, 1e-9)
				assert.InDelta(t, r.expected.integral, summary.integral, 1e-9)
				assert.InDelta(t, r.total, h.total, 1e-9)
				assert.Equal(t, r.since, h.since())
			}
		})
	}
}

// However garbled a buffer is, what is made of it can be true.
func FuzzSampleHistory(f *testing.F) {
	f.Add(uint64(1), 10.0, uint64(2*second), 20.0, uint64(3*second), 30.0)
	f.Add(uint64(0), math.NaN(), uint64(math.MaxUint64), math.Inf(1), uint64(5), -1.0)
	f.Fuzz(func(t *testing.T, t1 uint64, v1 float64, t2 uint64, v2 float64, t3 uint64, v3 float64) {
		var h sampleHistory
		before := 0.0
		for _, samples := range [][]sample{{{t1, v1}, {t2, v2}}, {{t2, v2}, {t3, v3}}, nil, {{t3, v3}, {t1, v1}}} {
			summary, found := h.add(samples, 100)
			require.GreaterOrEqual(t, h.total, before)
			require.LessOrEqual(t, h.total-before, 100*3*float64(maxSampleGap)/second)
			before = h.total
			if found {
				require.True(t, summary.mean >= 0 && summary.mean <= summary.peak && summary.peak <= 100, "%v", summary)
			}
		}
	})
}
