// Package training answers one question: what do a trainer's own metrics show of
// its progress? It is for runs whose steps have no spans.
//
// An exporter sends the same values again while nothing happens, so that only a
// change of one shows that the trainer has taken steps.
package training

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxMetrics limits the metrics of a rank that are compared.
	maxMetrics = 16
	// maxPending limits the step times and the values that wait for Take.
	maxPending = 256
	// maxSteps is the largest accepted number of steps between two points.
	maxSteps = 1 << 32
	// maxStepTime is the longest accepted time of a step, in seconds.
	maxStepTime = 7 * 24 * 3600
	// rememberedChanges is the number of newest changes whose distance is typical,
	// patienceChanges how many times that distance a trainer may show none.
	rememberedChanges, patienceChanges = 31, 5
	// maxLate is how much older than the newest one a point may be to count as late,
	// in nanoseconds. An even older one is that of a clock that was set back.
	maxLate = int64(5 * time.Minute)
	// maxApart is the longest time between two changes that counts as typical, in
	// seconds.
	maxApart = 3600
)

// Shows reports whether a metric shows the progress of a trainer. Of counters of
// tokens only those do that count what all ranks of the job train on: others count
// what a model generates.
func Shows(m *table.Metric) bool {
	switch m.Measure {
	case table.MeasureSteps, table.MeasureStepDuration:
		return true
	case table.MeasureTokens:
		return m.Instrument == table.Counter && m.OfJob
	default:
		return slices.Contains(numbers, m.Measure)
	}
}

// numbers are the measures of Values.
var numbers = []string{table.MeasureLoss, table.MeasureLearningRate, table.MeasureGradientNorm}

// Point is a point of a metric that Shows progress.
type Point struct {
	// Metric is the name of the metric, Measure and Instrument what it means.
	Metric, Measure string
	Instrument      table.Instrument
	// Value is a number, or the sum of a histogram, in the unit of the measure.
	Value float64
	// Count is the number of values of a histogram.
	Count uint64
	// Delta is true for a counter or histogram that covers only the time since the
	// point before.
	Delta bool
	// At is the time of the point by the client's clock, in nanoseconds since 1970.
	At int64
}

// Value is a number that a trainer shows of itself.
type Value struct {
	// Measure is one of numbers. Number may be NaN or infinite.
	Measure string
	Number  float64
	// At is its time by the client's clock, in nanoseconds since 1970.
	At int64
}

// Interval is a time in which a trainer took steps, by the client's clock, in
// nanoseconds since 1970.
type Interval struct{ Start, End int64 }

// Progress is what has changed since the previous Take.
type Progress struct {
	// First and Seen are when the rank's metrics first and last arrived, Moved when
	// they last changed, zero if they never did. Changed reports whether they have
	// changed since the previous Take.
	First, Seen, Moved time.Time
	Changed            bool
	// Steps is the number of steps, if the trainer counts them.
	Steps int64
	// Times are the durations of steps, in seconds: each is the mean of as many
	// steps as the trainer puts together.
	Times []float64
	// Worked are the times between two changes that were at most Patience apart.
	Worked []Interval
	// Values are in the order of arrival.
	Values []Value
	// At is the time of the newest change by the client's clock.
	At int64
	// Patience is how long the metrics may stay the same: five times their typical
	// time between two changes, at most 5 hours, 0 if it is unknown.
	Patience time.Duration
}

// Rank has the metrics of one rank. The zero Rank is ready to use. It is not safe
// for concurrent use.
type Rank struct {
	// Metrics are the newest points, by metric.
	Metrics map[string]last
	// timed reports whether the trainer sends the time of its steps.
	timed bool
	// apart are the seconds between the newest changes.
	apart []float64
	// Pending waits for Take.
	Pending Progress
}

// last is the newest point of a metric.
type last struct {
	Value float64
	Count uint64
	At    int64
}

// change is what one request shows: whether anything changed, and how many steps.
type change struct {
	moved bool
	steps float64
}

// Add adds the points of one request of the rank, of which there must be any, which arrived at now.
func (r *Rank) Add(points []Point, now time.Time) {
	r.Pending.First, r.Pending.Seen = cmp.Or(r.Pending.First, now), now
	var c change
	at := int64(0)
	for i := range points {
		p := &points[i]
		at = max(at, p.At)
		if p.Measure == table.MeasureStepDuration {
			r.timed = true
		}
		if r.compare(p, &c) && slices.Contains(numbers, p.Measure) && len(r.Pending.Values) < maxPending {
			r.Pending.Values = append(r.Pending.Values, Value{p.Measure, p.Value, p.At})
		}
	}
	if c.moved {
		r.move(&c, at, now)
	}
}

// compare compares a point with the one before, and reports whether it is new.
func (r *Rank) compare(p *Point, c *change) (isNew bool) {
	name := p.Metric
	before, known := r.Metrics[name]
	if !known {
		if len(r.Metrics) >= maxMetrics {
			return false
		}
		name = strings.Clone(name)
	}
	if late := before.At - p.At; !p.Delta && late > 0 && late <= maxLate {
		return false // what it shows is part of the newer one
	}
	if p.Delta {
		before = last{}
	}
	value, count := p.Value-before.Value, int64(p.Count-before.Count) // #nosec G115 -- a wrong one is below 0
	mlattr.Put(&r.Metrics, name, last{p.Value, p.Count, p.At})
	switch p.Instrument {
	case table.Counter:
		if known && value < 0 {
			return true // it began again, as a process does
		}
		if isNew = value > 0 && value <= math.MaxFloat64; isNew && (known || p.Delta) {
			c.moved = true
			if p.Measure == table.MeasureSteps {
				c.steps += value
			}
		}
	case table.Histogram:
		if isNew = count > 0; isNew && (known || p.Delta) {
			c.moved = true
			r.time(p.Measure, value/float64(count))
		}
	case table.Gauge:
		isNew = !known || value != 0
		if known && isNew && !(Infinite(p.Value) && Infinite(before.Value)) {
			c.moved = true
			r.time(p.Measure, p.Value)
		}
	}
	return isNew
}

// Infinite reports whether a number is infinite or NaN. A Value that is counts each
// time that it is sent.
func Infinite(number float64) bool { return math.IsNaN(number) || math.IsInf(number, 0) }

// time adds the duration of a step.
func (r *Rank) time(measure string, seconds float64) {
	if measure == table.MeasureStepDuration && seconds > 0 && seconds <= maxStepTime && len(r.Pending.Times) < maxPending {
		r.Pending.Times = append(r.Pending.Times, seconds)
	}
}

// move records a change.
func (r *Rank) move(c *change, at int64, now time.Time) {
	p := &r.Pending
	if !p.Moved.IsZero() {
		r.apart = shared.AppendNewest(r.apart, min(now.Sub(p.Moved).Seconds(), maxApart), rememberedChanges)
	}
	previous, patience := p.At, r.patience()
	p.Moved, p.Changed = now, true
	p.At = at
	if at <= previous {
		previous = 0 // the clock was set back, or the points have no time
	}
	if steps := int64(math.Round(min(c.steps, maxSteps))); steps > 0 {
		p.Steps += steps
		if !r.timed && previous > 0 {
			r.time(table.MeasureStepDuration, float64(at-previous)/1e9/float64(steps))
		}
	}
	if previous > 0 && patience > 0 && at-previous <= patience.Nanoseconds() && len(p.Worked) < maxPending {
		p.Worked = append(p.Worked, Interval{previous, at})
	}
}

// patience returns Progress.Patience.
func (r *Rank) patience() time.Duration {
	return time.Duration(patienceChanges * shared.Median(slices.Clone(r.apart)) * float64(time.Second))
}

// Take returns what has changed since the previous call, and clears it.
func (r *Rank) Take() Progress {
	taken := r.Pending
	taken.Patience = r.patience()
	r.Pending = Progress{First: taken.First, Seen: taken.Seen, Moved: taken.Moved, At: taken.At}
	return taken
}
