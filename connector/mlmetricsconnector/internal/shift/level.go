// Package shift finds out whether what a service does has shifted from what is
// usual: a proportion by Fisher's exact test, and the level of a value by the
// medians of blocks of observations.
package shift

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// blockTime and blockCount are the least time and number of observations of
	// a block, so that neither a burst nor a few slow requests are one. Medians
	// of blocks differ as much as correlated observations make them differ, which
	// the deviation of single observations does not show (batch means: Law and
	// Kelton, Simulation Modeling and Analysis).
	blockTime, blockCount = time.Minute, 10
	// sampled is the number of observations of a block whose median is taken.
	sampled = 64
	// keptBlocks are usual, an hour of a busy service; with fewer than
	// leastBlocks nothing is usual.
	keptBlocks, leastBlocks = 60, 12
	// deviations is the least distance of the blocks together from the usual
	// median, oddDeviations that of each, in robust standard deviations of a block:
	// 1.4826 times the median absolute deviation (Hampel, The Influence Curve and
	// Its Role in Robust Estimation, 1974). For five blocks that do not depend on
	// each other, 3.5 are 7.8 standard errors of their mean; those of one load do.
	deviations, oddDeviations = 3.5, 1
	// oddFactor is the share of the least shift that each block has, and maxOdd
	// how many times the blocks of a rule are odd until they are usual.
	oddFactor, maxOdd = 0.5, 4
	// leastDeviation is the least standard deviation of logarithms.
	leastDeviation = 0.1
	// medianError times the standard deviation over the root of the count is the
	// standard error of a median of normal observations.
	medianError = 1.2533
	// normalQuartiles is the distance of the quartiles of a normal distribution,
	// in standard deviations.
	normalQuartiles = 1.349
	// versionCount is the least number of observations of one version.
	versionCount = 16
	// calmFactor is the share of the least shift below which a block is usual
	// again.
	calmFactor = 0.5
	// hoursKept are the hours whose levels are remembered, and a level is as before if in
	// hoursBefore of them, with hourBlocks usual blocks or more each, it was about as high.
	hoursKept, hoursBefore, hourBlocks = 25, 2, 5
	// newUsual is how long a shift lasts until it is usual.
	newUsual = 24 * time.Hour
)

// demandEffect is how the value may grow with demand, as an exponent: twice the
// demand excuses 1.4 times the time. In a queue with one server the time grows so
// at a third of its capacity (Kleinrock, Queueing Systems, 1975).
const demandEffect = 0.5

// creditedChange is the least growth of work or demand, as a logarithm, that
// excuses growth of the value; smaller ones are noise.
var creditedChange = math.Log(1.5)

// Versions is the number of versions of a service that a Level and a Proportion
// tell apart. The index 0 is any other or none.
const Versions = 8

// Works is the number of measures of the work that an observation took.
const Works = 2

// Observation is one value.
type Observation struct {
	// Value is a logarithm.
	Value float64
	// Work are logarithms of how much there was to do, such as tokens. The value
	// is excused if it grows no faster than they do. NaN means unknown.
	Work [Works]float64
	// Version is below Versions.
	Version uint8
}

// Rule says which shift matters.
type Rule struct {
	// Least is the least shift of the blocks together, as a logarithm.
	Least float64
	// Blocks is how many blocks in a row must be shifted.
	Blocks int
	// Mean takes the mean of a block in place of its median, for values without
	// outliers.
	Mean bool
	// Demand excuses values that grow no faster than the square root of the number
	// of observations a second.
	Demand bool
}

// Level has the level of a value over time. The zero Level is ready to use. It is
// not safe for concurrent use.
type Level struct {
	// sample is of the block that has begun, count the number of its
	// observations, began when the first one came.
	sample []Observation
	count  int
	began  time.Time
	state  uint64

	// usual are the newest usual blocks.
	usual []block
	// hours are the means of the usual blocks of each hour of a day, by hours since 1970.
	hours [hoursKept]hour
	// odd are the shifted blocks since the last usual one, before the shift is
	// concluded; calm is the number of usual blocks in a row after that.
	odd  []block
	calm int

	shift Shift
	was   block
	// deviation is that of was.
	deviation float64
}

// hour has the usual blocks of an hour.
type hour struct {
	number int64
	sum    float64
	blocks int
}

// block is a summary of observations.
type block struct {
	value, deviation float64
	work             [Works]float64
	demand           float64
	// grown is by how much the value is above the usual one, beyond what is
	// excused.
	grown float64
	began time.Time
	count int
}

// Shift is a shift of a level.
type Shift struct {
	// Lasts reports whether there is one.
	Lasts bool
	Since time.Time
	// Value and Usual are logarithms.
	Value, Usual float64
	// Count is the number of observations of the newest block, Window its time.
	Count  int
	Window time.Duration
	// Works and Demand report what has grown, too, and excuses part of the shift.
	Works  [Works]bool
	Demand bool
	// ByVersion has the values of the versions in the newest block.
	ByVersion [Versions]VersionLevel
}

// VersionLevel is the level of one version in a block.
type VersionLevel struct {
	// Value is a logarithm.
	Value float64
	Count int
}

// Shift returns the shift that lasts, or one without Lasts.
func (l *Level) Shift() *Shift { return &l.shift }

// Add adds an observation that came at now, unless its value is not finite.
func (l *Level) Add(now time.Time, o Observation, rule *Rule) {
	if math.IsNaN(o.Value) || math.IsInf(o.Value, 0) {
		return
	}
	if l.count >= blockCount && now.Sub(l.began) >= blockTime {
		l.end(now, rule)
	}
	if l.count == 0 {
		l.began = now
	}
	if l.count++; len(l.sample) < sampled {
		l.sample = append(l.sample, o)
	} else if i := l.random(l.count); i < sampled {
		l.sample[i] = o // reservoir sampling: each is as likely in the sample
	}
}

// random returns a number below n, by a xorshift generator: what is sampled needs
// no better one, and the same input must give the same result.
func (l *Level) random(n int) int {
	l.state = cmp.Or(l.state, 0x9e3779b97f4a7c15)
	l.state ^= l.state << 13
	l.state ^= l.state >> 7
	l.state ^= l.state << 17
	return int(l.state >> 33 % uint64(n)) // #nosec G115 -- n is positive, the result below it
}

// end ends a block.
func (l *Level) end(now time.Time, rule *Rule) {
	b, versions := l.summarise(now, rule)
	l.count, l.sample = 0, l.sample[:0]
	switch {
	case l.shift.Lasts:
		l.goOn(&b, versions, now, rule)
	case len(l.usual) < leastBlocks:
		l.keep(b)
	default:
		l.was, l.deviation = l.typical()
		value, odd := l.odds(&b, versions, rule)
		if l.odd = append(l.odd, b); !odd || len(l.odd) > maxOdd*rule.Blocks {
			l.keep(l.odd...)
			l.odd = l.odd[:0]
			return
		}
		if l.concludes(rule) {
			l.shift = Shift{Lasts: true, Since: l.odd[0].began, Usual: l.was.value}
			l.calm, l.odd = 0, l.odd[:0]
			l.show(&b, value, versions, now, rule)
		}
	}
}

// concludes reports whether the newest odd blocks together are a shift.
func (l *Level) concludes(rule *Rule) bool {
	grown := 0.0
	for _, odd := range l.odd[max(0, len(l.odd)-rule.Blocks):] {
		grown += odd.grown / float64(rule.Blocks)
	}
	return len(l.odd) >= rule.Blocks && grown >= max(rule.Least, deviations*l.deviation)
}

// goOn adds a block while a shift lasts.
func (l *Level) goOn(b *block, versions *[Versions]VersionLevel, now time.Time, rule *Rule) {
	value, _ := l.odds(b, versions, rule)
	if l.calm++; b.grown >= calmFactor*rule.Least {
		l.calm = 0
	}
	l.show(b, value, versions, now, rule)
	if now.Sub(l.shift.Since) >= newUsual {
		// What is usual begins anew.
		l.shift, l.usual = Shift{}, l.usual[:0]
	} else if l.calm >= rule.Blocks {
		l.shift = Shift{}
	}
}

// show sets what the newest block shows.
func (l *Level) show(b *block, value float64, versions *[Versions]VersionLevel, now time.Time, rule *Rule) {
	l.shift.Value, l.shift.Count, l.shift.Window = value, b.count, now.Sub(b.began)
	l.shift.ByVersion = *versions
	for i := range b.work {
		l.shift.Works[i] = b.work[i]-l.was.work[i] > creditedChange
	}
	l.shift.Demand = rule.Demand && b.demand-l.was.demand > creditedChange
}

// keep makes blocks usual.
func (l *Level) keep(blocks ...block) {
	for _, b := range blocks {
		number := b.began.Unix() / 3600
		h := &l.hours[number%hoursKept]
		if h.number != number {
			*h = hour{number: number}
		}
		h.sum, h.blocks = h.sum+b.value, h.blocks+1
		l.usual = shared.AppendNewest(l.usual, b, keptBlocks)
	}
}

// excuse returns the growth of the value that growth of work explains if it is
// proportional to it, and that of demand with demandEffect.
func (l *Level) excuse(b *block, rule *Rule) (excuse float64) {
	for i := range b.work {
		// NaN is not greater.
		if grown := b.work[i] - l.was.work[i]; grown > creditedChange {
			excuse = max(excuse, grown)
		}
	}
	if grown := b.demand - l.was.demand; rule.Demand && grown > creditedChange {
		excuse += demandEffect * grown
	}
	return excuse
}

// odds sets b.grown, and reports whether a block is odd: as a whole, or one
// version of it. value is that which has grown most.
func (l *Level) odds(b *block, versions *[Versions]VersionLevel, rule *Rule) (value float64, odd bool) {
	excuse := l.excuse(b, rule)
	beyond := func(value, deviation float64) bool {
		return value-l.was.value-excuse >= max(oddFactor*rule.Least, oddDeviations*deviation)
	}
	value, odd = b.value, beyond(b.value, l.deviation)
	for i := range versions {
		v := &versions[i]
		if v.Count < versionCount || v.Count == b.count {
			continue
		}
		// Few observations of a version differ more.
		own := deviations * medianError * b.deviation / math.Sqrt(float64(v.Count))
		if v.Value > value && beyond(v.Value, max(l.deviation, own)) {
			value, odd = v.Value, true
		}
	}
	b.grown = value - l.was.value - excuse
	return value, odd && !l.asBefore(value, b, rule)
}

// asBefore reports whether a value was as high in some hours of the day before, so that
// what changed was another load in between, such as one of the night.
func (l *Level) asBefore(value float64, b *block, rule *Rule) bool {
	oldest, as := b.began.Unix()/3600-hoursKept, 0
	for i := range l.hours {
		if h := &l.hours[i]; h.number > oldest && h.blocks >= hourBlocks && h.sum/float64(h.blocks) > value-calmFactor*rule.Least {
			as++
		}
	}
	return as >= hoursBefore
}

// typical returns the medians of the usual blocks, and the robust deviation of
// their values.
func (l *Level) typical() (was block, deviation float64) {
	of := func(get func(*block) float64) []float64 { return known(l.usual, get) }
	for w := range was.work {
		was.work[w] = median(of(func(b *block) float64 { return b.work[w] }))
	}
	was.demand = median(of(func(b *block) float64 { return b.demand }))
	standard := median(of(func(b *block) float64 {
		return medianError * b.deviation / math.Sqrt(float64(min(b.count, sampled)))
	}))
	was.value, deviation = pace.Spread(of(func(b *block) float64 { return b.value }))
	return was, max(deviation, standard, leastDeviation)
}

// summarise returns the summary of the sample, and the values of its versions.
func (l *Level) summarise(now time.Time, rule *Rule) (b block, versions *[Versions]VersionLevel) {
	b.began, b.count = l.began, l.count
	b.demand = math.Log(float64(l.count) / now.Sub(l.began).Seconds())
	of := func(get func(*Observation) float64) []float64 { return known(l.sample, get) }
	center := median
	if rule.Mean {
		center = shared.Mean
	}
	values := of(func(o *Observation) float64 { return o.Value })
	b.value = center(values)
	slices.Sort(values)
	b.deviation = (values[len(values)*3/4] - values[len(values)/4]) / normalQuartiles
	for w := range b.work {
		b.work[w] = median(of(func(o *Observation) float64 { return o.Work[w] }))
	}
	versions = new([Versions]VersionLevel)
	for v := range versions {
		values := of(func(o *Observation) float64 {
			if int(o.Version) != v {
				return math.NaN()
			}
			return o.Value
		})
		versions[v] = VersionLevel{Value: center(values), Count: len(values)}
	}
	return b, versions
}

// known returns the values of all that are not NaN.
func known[Of any](all []Of, get func(*Of) float64) []float64 {
	values := make([]float64, 0, len(all))
	for i := range all {
		if value := get(&all[i]); !math.IsNaN(value) {
			values = append(values, value)
		}
	}
	return values
}

// median returns the median of values, NaN without any, and changes their order.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return shared.Median(values)
}
