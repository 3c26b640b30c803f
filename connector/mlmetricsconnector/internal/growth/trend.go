// Package growth finds memory that grows towards its limit.
package growth

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// samples is the number of samples of a Trend, spacing the least time between
	// two of them: together an hour.
	samples, spacing = 60, time.Minute
	// least is the smallest number of samples with a trend.
	least = 30
	// leastGrowth is the fraction of the limit by which the samples must have grown.
	leastGrowth = 0.05
	// goesOn is the least slope of the newer half, as a fraction of that of the
	// older one: a cache that fills slows down.
	goesOn = 0.8
	// steadily is the least fraction of pairs of samples that grow, less those that
	// shrink: Kendall's tau, as in the test of Mann (1945).
	steadily = 0.6
	// soon is the longest time left that is reported.
	soon = 12 * time.Hour
)

type sample struct {
	at    time.Time
	value float64
}

// Trend has the newest samples of a value. The zero Trend is ready to use. It is
// not safe for concurrent use.
type Trend struct {
	samples []sample
	// forecast is the result of Forecast for limit, known while changed is false.
	forecast Forecast
	limit    float64
	changed  bool
}

// Add adds a value, unless another one was added less than a minute ago.
func (t *Trend) Add(at time.Time, value float64) {
	if n := len(t.samples); n > 0 {
		since := at.Sub(t.samples[n-1].at)
		switch {
		case since < 0 || since > samples*spacing:
			t.samples = t.samples[:0] // another clock, or another time
		case since < spacing:
			return
		}
	}
	t.samples = shared.AppendNewest(t.samples, sample{at, value}, samples)
	t.changed = true
}

// Reset forgets all values.
func (t *Trend) Reset() { *t = Trend{samples: t.samples[:0]} }

// Forecast is when a value that grows reaches its limit.
type Forecast struct {
	// Since is the time of the first sample, Count their number, Window their time.
	Since  time.Time
	Count  int
	Window time.Duration
	// From and To are the first and the newest value, PerHour their growth an hour.
	From, To, PerHour float64
	// Left is the time until the value reaches its limit.
	Left time.Duration
}

// Forecast returns when the value reaches limit, if it grows steadily by 5 % of
// the limit or more within half an hour to an hour, and will reach it within 12
// hours. The slope is that of Theil and Sen (1968), the median of the slopes of all
// pairs: steps and outliers do not change it.
func (t *Trend) Forecast(limit float64) (f Forecast, ok bool) {
	if t.changed || limit != t.limit {
		t.changed, t.limit, t.forecast = false, limit, t.compute(limit)
	}
	return t.forecast, t.forecast.Count > 0
}

// compute returns what Forecast does, or a Forecast of no samples.
func (t *Trend) compute(limit float64) (none Forecast) {
	n := len(t.samples)
	if n < least {
		return none
	}
	first, last := t.samples[0], t.samples[n-1]
	if last.value-first.value < leastGrowth*limit/2 || last.value > limit {
		return none // what most values show, without a computation
	}
	slope, tau := theilSen(t.samples)
	window := last.at.Sub(first.at)
	older, _ := theilSen(t.samples[:n/2])
	newer, _ := theilSen(t.samples[n/2:])
	left := (limit - last.value) / slope
	if slope*window.Seconds() < leastGrowth*limit || tau < steadily || newer < goesOn*older || left > soon.Seconds() {
		return none
	}
	return Forecast{
		Since: first.at, Count: n, Window: window, From: first.value, To: last.value,
		PerHour: slope * 3600, Left: time.Duration(left * float64(time.Second)),
	}
}

// theilSen returns the median of the slopes between all pairs, a second, and the
// fraction of the pairs that grow, less those that shrink.
func theilSen(of []sample) (slope, tau float64) {
	slopes := make([]float64, 0, len(of)*(len(of)-1)/2)
	sum := 0
	for i := range of {
		for j := range i {
			slopes = append(slopes, (of[i].value-of[j].value)/of[i].at.Sub(of[j].at).Seconds())
			sum += cmp.Compare(of[i].value, of[j].value)
		}
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2], float64(sum) / float64(len(slopes))
}
