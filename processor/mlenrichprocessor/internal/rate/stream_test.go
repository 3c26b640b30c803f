package rate

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// t0 is the time of the first point, in nanoseconds.
const t0 = uint64(1_700_000_000_000_000_000)

// newTestStreams returns streams and the time that they see.
func newTestStreams() (*Streams, *time.Time) {
	at := time.Unix(1_700_000_000, 0)
	return NewStreams(func() time.Time { return at }), &at
}

// after is a cumulative counter's point, so many seconds after t0.
func after(s, sum float64) reading {
	return reading{start: t0 - 1, at: t0 + uint64(s*1e9), sum: sum}
}

func TestStreamRates(t *testing.T) {
	type gained struct {
		rate   float64
		ok     bool
		reason Reason
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
			[]gained{none, {50, true, ""}, {0, false, counterReset}, {10, true, ""}},
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
			[]gained{none, {50, true, ""}, {0, false, outOfOrder}, {50, true, ""}},
		},
		"another value of the same time": {
			[]reading{after(0, 1000), after(0, 2000), after(60, 4000)},
			[]gained{none, {0, false, outOfOrder}, {50, true, ""}},
		},
		"a restart that its start tells": {
			[]reading{after(0, 1000), restarted, after(180, 5600)},
			[]gained{none, {0, false, counterReset}, {10, true, ""}},
		},
		"a histogram with fewer values than before": {
			[]reading{counted(0, 500, 5), counted(30, 600, 1)},
			[]gained{none, {0, false, counterReset}},
		},
		"points too close": {
			[]reading{after(0, 1000), after(0.0005, 1001), after(60, 4000)},
			[]gained{none, {0, false, shortDuration}, {50, true, ""}},
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
		"a delta of no time":            {[]reading{delta(60, 60, 3000)}, []gained{{0, false, negativeDuration}}},
		"a delta that ends first":       {[]reading{delta(60, 0, 3000)}, []gained{{0, false, negativeDuration}}},
		"a delta of nobody knows when":  {[]reading{noStart}, []gained{{0, false, invalidValue}}},
		"a value that is no number":     {[]reading{after(0, 1000), bad(math.NaN()), after(60, 4000)}, []gained{none, {0, false, invalidValue}, {50, true, ""}}},
		"a value without end":           {[]reading{after(0, 1000), bad(math.Inf(1)), after(60, 4000)}, []gained{none, {0, false, invalidValue}, {50, true, ""}}},
		"a counter below zero":          {[]reading{after(0, 1000), bad(-1), after(60, 4000)}, []gained{none, {0, false, invalidValue}, {50, true, ""}}},
		"a point without a time":        {[]reading{after(0, 1000), noTime, after(60, 4000)}, []gained{none, {0, false, invalidValue}, {50, true, ""}}},
		"more than a double can divide": {[]reading{after(0, 0), after(0.5, math.MaxFloat64)}, []gained{none, {0, false, invalidValue}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stream newest
			var got []gained
			for _, point := range tt.points {
				rate, reason := stream.rate(point)
				one := gained{rate: rate, ok: reason == ""}
				if reason != unwanted {
					one.reason = reason
				}
				got = append(got, one)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// TestThroughputInTwoPipelines shows that each of two pipelines gets the rates
// of what both receive, though they share a store.
func TestThroughputInTwoPipelines(t *testing.T) {
	s, _ := newTestStreams()
	for range 2 {
		instance := s.Instances.Add(1)
		var rates []float64
		for _, value := range []reading{after(0, 1000), after(60, 4000)} {
			points := []point{{reading: value, key: streamKey{instance: instance}}}
			s.advance(points, Skipped{})
			rates = append(rates, points[0].rate)
		}
		assert.Equal(t, []float64{0, 50}, rates)
	}
}

func TestStreamsAreBoundedAndForgotten(t *testing.T) {
	s, c := newTestStreams()
	send := func(n int, at float64) bool {
		points := []point{{reading: after(at, at), key: streamKey{hash: [16]byte{byte(n >> 16), byte(n >> 8), byte(n)}}}}
		s.advance(points, Skipped{})
		return points[0].rated
	}
	for i := range maxStreams + 100 {
		send(i, 0)
	}
	assert.Equal(t, maxStreams, s.All.Size("").Entries)
	assert.EqualValues(t, 100, s.All.Size("").Evicted)
	assert.True(t, send(maxStreams, 60))
	assert.False(t, send(0, 60), "the first went, and begins anew")
	*c = c.Add(streamAge + time.Second)
	assert.False(t, send(maxStreams, 1000), "what was not heard of for so long has no rate")

	before := s.All.Size("").Entries
	bad := []point{{reading: after(0, math.NaN()), key: streamKey{instance: 9}}, {reading: reading{start: t0, at: t0 + 1e9, sum: 1, delta: true}, key: streamKey{instance: 8}}}
	s.advance(bad, Skipped{})
	assert.Equal(t, before, s.All.Size("").Entries, "what needs no memory gets none")
}
