package training_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

var start = time.Unix(1_790_000_000, 0)

func at(second int) int64 { return start.Add(time.Duration(second) * time.Second).UnixNano() }

func counter(measure string, value float64, second int) training.Point {
	return training.Point{Metric: measure, Measure: measure, Instrument: table.Counter, Value: value, At: at(second)}
}

func gauge(measure string, value float64, second int) training.Point {
	return training.Point{Metric: measure, Measure: measure, Instrument: table.Gauge, Value: value, At: at(second)}
}

func times(sum float64, count uint64, second int) training.Point {
	return training.Point{
		Metric: "time", Measure: table.MeasureStepDuration, Instrument: table.Histogram, Value: sum, Count: count, At: at(second),
	}
}

// play adds the points, each in a request of its own that arrives at its time.
func play(r *training.Rank, points ...training.Point) training.Progress {
	for _, p := range points {
		r.Add([]training.Point{p}, time.Unix(0, p.At))
	}
	return r.Take()
}

func TestStepsOfACounter(t *testing.T) {
	var r training.Rank
	p := play(&r, counter(table.MeasureSteps, 100, 0))
	assert.False(t, p.Changed, "steps of an unknown time")
	p = play(&r, counter(table.MeasureSteps, 110, 15), counter(table.MeasureSteps, 110, 30), counter(table.MeasureSteps, 125, 60))
	assert.True(t, p.Changed)
	assert.EqualValues(t, 25, p.Steps)
	assert.Equal(t, []float64{3}, p.Times, "45 s for 15 steps; the first 10 began at an unknown time")
	assert.Equal(t, []training.Interval{{Start: at(15), End: at(60)}}, p.Worked)
	assert.Equal(t, 225*time.Second, p.Patience)
	p = play(&r, counter(table.MeasureSteps, 125, 75))
	assert.False(t, p.Changed)
	assert.Equal(t, start.Add(time.Minute), p.Moved.Local(), "it stays the same")
	assert.Equal(t, start.Add(75*time.Second), p.Seen.Local())
	p = play(&r, counter(table.MeasureSteps, 3, 90), counter(table.MeasureSteps, 5, 105))
	assert.EqualValues(t, 2, p.Steps, "it began again")
}

// A point that arrives late, as after a retry, counts nothing twice.
func TestPointsOutOfOrder(t *testing.T) {
	var r training.Rank
	r.Add([]training.Point{counter(table.MeasureSteps, 100, 0)}, start)
	r.Add([]training.Point{counter(table.MeasureSteps, 110, 30)}, start.Add(30*time.Second))
	r.Add([]training.Point{counter(table.MeasureSteps, 105, 15)}, start.Add(31*time.Second))
	r.Add([]training.Point{counter(table.MeasureSteps, 115, 45)}, start.Add(45*time.Second))
	assert.EqualValues(t, 15, r.Take().Steps)

	r = training.Rank{}
	p := play(&r, times(2, 1, 0), times(5, 2, 20), times(4, 2, 10), times(8, 3, 30))
	assert.Equal(t, []float64{3, 3}, p.Times)

	r = training.Rank{}
	p = play(&r, counter(table.MeasureSteps, 100, 7200), counter(table.MeasureSteps, 3, 0), counter(table.MeasureSteps, 5, 15))
	assert.EqualValues(t, 2, p.Steps, "the clock was set back by two hours, and the trainer began again")
}

func TestMeansOfAHistogram(t *testing.T) {
	var r training.Rank
	p := play(&r, times(2, 1, 0), times(2, 1, 10), times(5, 2, 100), times(5, 2, 110), times(13, 4, 200))
	assert.Equal(t, []float64{3, 4}, p.Times)
	assert.Zero(t, p.Steps, "they are not counted")
	assert.Equal(t, 500*time.Second, p.Patience, "100 s between two changes")
	p = play(&r, counter(table.MeasureSteps, 1, 200), counter(table.MeasureSteps, 3, 300))
	assert.EqualValues(t, 2, p.Steps)
	assert.Empty(t, p.Times, "the trainer sends the times itself")
}

func TestDeltas(t *testing.T) {
	var r training.Rank
	one, two := times(2, 1, 0), times(6, 2, 10)
	one.Delta, two.Delta = true, true
	assert.Equal(t, []float64{2, 3}, play(&r, one, two).Times)
}

// The last gauges are sent again while nothing happens.
func TestLosses(t *testing.T) {
	var r training.Rank
	p := play(&r, gauge(table.MeasureLoss, 3, 0))
	assert.Equal(t, []training.Value{{Measure: table.MeasureLoss, Number: 3, At: at(0)}}, p.Values, "shown although it may be old")
	assert.False(t, p.Changed)
	p = play(&r, gauge(table.MeasureLoss, 3, 10))
	assert.Empty(t, p.Values)
	assert.False(t, p.Changed)
	p = play(&r, gauge(table.MeasureLoss, 2.5, 20))
	assert.Len(t, p.Values, 1)
	assert.True(t, p.Changed)
	nan := math.NaN()
	p = play(&r, gauge(table.MeasureLoss, nan, 30))
	assert.True(t, p.Changed)
	assert.True(t, math.IsNaN(p.Values[0].Number))
	p = play(&r, gauge(table.MeasureLoss, nan, 40))
	assert.Len(t, p.Values, 1, "each one counts")
	assert.False(t, p.Changed, "it shows no step")
	assert.True(t, play(&r, gauge(table.MeasureLoss, 1, 50)).Changed)
}

// A time between two changes that is far longer than others was spent on something
// else.
func TestAGap(t *testing.T) {
	var r training.Rank
	p := play(&r, counter(table.MeasureTokens, 1, 0), counter(table.MeasureTokens, 2, 10), counter(table.MeasureTokens, 3, 20),
		counter(table.MeasureTokens, 4, 30), counter(table.MeasureTokens, 5, 1000), counter(table.MeasureTokens, 6, 1010))
	assert.Equal(t, []training.Interval{{at(10), at(20)}, {at(20), at(30)}, {at(1000), at(1010)}}, p.Worked)
}

func TestHostilePoints(t *testing.T) {
	var r training.Rank
	for n := range 1000 {
		for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, 0} {
			for instrument := table.Instrument(0); instrument <= table.Histogram; instrument++ {
				r.Add([]training.Point{{
					Metric: strconv.Itoa(n % 100), Measure: table.MeasureStepDuration, Instrument: instrument, Value: value,
					Count: uint64(n) << 40, At: int64(n-500) << 50,
				}, counter(table.MeasureSteps, value, n), gauge(table.MeasureLoss, value, n)}, start)
			}
		}
	}
	p := r.Take()
	assert.LessOrEqual(t, len(p.Values), 256)
	assert.LessOrEqual(t, len(p.Times), 256)
	assert.LessOrEqual(t, len(p.Worked), 256)
	assert.GreaterOrEqual(t, p.Steps, int64(0))
	for _, seconds := range p.Times {
		assert.True(t, seconds > 0 && seconds < 1e6, seconds)
	}
}

func TestShows(t *testing.T) {
	assert.True(t, training.Shows(&table.Metric{Measure: table.MeasureTokens, Instrument: table.Counter, OfJob: true}))
	assert.False(t, training.Shows(&table.Metric{Measure: table.MeasureTokens, Instrument: table.Counter}), "of a model")
	assert.False(t, training.Shows(&table.Metric{Measure: table.MeasureTokens, Instrument: table.Histogram, OfJob: true}), "of requests")
	assert.False(t, training.Shows(&table.Metric{Measure: table.MeasureTokenThroughput, Instrument: table.Gauge, OfJob: true}))
	assert.True(t, training.Shows(&table.Metric{Measure: table.MeasureSteps, Instrument: table.Counter}))
}

func FuzzRank(f *testing.F) {
	f.Add(1.0, 2.0, uint64(1), uint64(2), int64(5), int64(6), byte(1))
	f.Fuzz(func(t *testing.T, a, b float64, n, m uint64, from, to int64, kind byte) {
		var r training.Rank
		for _, p := range []training.Point{{Value: a, Count: n, At: from}, {Value: b, Count: m, At: to}} {
			p.Metric, p.Measure, p.Instrument = "x", table.MeasureStepDuration, table.Instrument(kind%4)
			p.Delta = kind&4 != 0
			r.Add([]training.Point{p}, start)
		}
		p := r.Take()
		for _, seconds := range p.Times {
			if !(seconds > 0) || math.IsInf(seconds, 0) {
				t.Fatal(seconds)
			}
		}
	})
}
