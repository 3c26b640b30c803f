package pace

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// levelSteps are the steps of a block of short steps, longSteps those of one of steps
	// from longStep seconds on, and leastDistinct the least number of different times in
	// one: a trainer that reports means repeats each for its steps.
	levelSteps, longSteps, leastDistinct = 20, 10, 3
	longStep                             = 1.0
	// usualBlocks are compared with newBlocks, of at least leastUsual.
	usualBlocks, newBlocks, leastUsual = 24, 4, 7
	// lowestOf is the number of blocks of a group, of which usualGroups are compared.
	lowestOf, usualGroups = 4, 16
	// leastShift is the least shift of a level, as a logarithm: real runs vary by a
	// hundredth.
	leastShift = 0.035
	// shiftErrors is the least shift in its standard errors, and leastLevelSpread the
	// least standard deviation of a block. On 102 healthy trainings of nanogpt and
	// MLPerf 6 give no shift that lasts (docs/evidence/anomalies.md).
	shiftErrors, leastLevelSpread = 6, 0.003
	// eachOf is the share of a shift that each new block has, allOf that of the median
	// of all since, and backAt that below which the level is as it was.
	eachOf, allOf, backAt = 0.6, 0.7, 0.5
	// beyondOwn is how many times the largest shift that went by itself a shift is.
	beyondOwn = 1.3
	// keptShift is how many blocks of a shift are remembered, and shiftUsual how long a
	// shift lasts until it is usual.
	keptShift  = 32
	shiftUsual = 24 * time.Hour
	// LastingSteps is the number of steps for which a shift lasts, and leastLasting that
	// for which it does together with a time.
	LastingSteps, leastLasting = 400, 100
	// lasting is from when on the end of a shift does not make it usual.
	lasting = 5 * time.Minute
	// driftBlocks are those of a group. The medians of their shortest steps and of their medians
	// have both drifted from leastDrift above those of the lowest group on, as a logarithm, for
	// driftTime: the real trainings grow by 0.11 at most. Where steps of several lengths mix, the
	// shortest stay, and where the short ones are no more, the medians do.
	driftBlocks = 16
	driftTime   = 30 * time.Minute
	// mostMemory is the largest correlation of one block with the next that is believed.
	mostMemory = 0.8
)

// leastDrift is the least drift of a level, as a logarithm.
var leastDrift = math.Log(1.2)

// Level finds out when the steps of a rank have begun to take longer, by a few
// hundredths where they vary less: the medians of blocks of steps are compared with what
// a line through those before gives (Theil and Sen, 1950, 1968), so that a time that
// grows steadily, as with a window of attention, is usual. Where some blocks take longer
// by their data, the lowest ones of groups of blocks vary less. What the run's own shifts
// show that went by themselves is usual, too. The zero Level is ready to use. It is not
// safe for concurrent use.
type Level struct {
	// block are the durations of the newest steps in seconds, distinct how many of them
	// differ from the one before, and first whether the first block is over, in which
	// caches are filled.
	block    []float64
	distinct int
	first    bool
	// medians are those of the blocks, and lowest the lowest one of each group. The newest
	// group has so many steps and seconds.
	medians, lowest levels
	group           []float64
	steps           int
	seconds         float64
	drift           drift
}

// levels are logarithms of times.
type levels struct {
	// newest are the newest ones, the newest last.
	newest []float64
	// largest is the largest shift that went by itself.
	largest float64
	shift   shift
}

// drift is how far the level is above its lowest one, whatever the trend.
type drift struct {
	// shortest and medians are those of the newest blocks, which took seconds and steps.
	// lowest is the least median of the shortest of a group, usual that of its medians, and
	// now that of the medians of the newest one; known reports whether there is any.
	shortest, medians  []float64
	lowest, usual, now float64
	known              bool
	seconds            time.Duration
	steps              int
	// above is for how long and how many steps groups have been above the lowest one.
	above      time.Duration
	aboveSteps int
}

// shift is how the level differs from a line.
type shift struct {
	// size is the shift when it was found, 0 if there is none, at and slope the line.
	size, at, slope float64
	// beyond are the newest distances of blocks from the line, and blocks is the number
	// of blocks since it was found.
	beyond []float64
	blocks int
	lasted time.Duration
	steps  int
}

// Shift is a lasting change of the level. The zero Shift is none.
type Shift struct {
	// Usual and Now are the seconds of a step.
	Usual, Now float64
	// Lasted is since when, by the times of Steps steps.
	Lasted time.Duration
	Steps  int
}

// Add adds the duration of a step.
func (l *Level) Add(d time.Duration) {
	if d <= 0 || d > shiftUsual {
		return
	}
	seconds := d.Seconds()
	if n := len(l.block); n == 0 || l.block[n-1] != seconds {
		l.distinct++
	}
	l.block = append(l.block, seconds)
	for _, s := range []*shift{&l.medians.shift, &l.lowest.shift} {
		s.lasted, s.steps = min(s.lasted+d, shiftUsual), s.steps+1
	}
	steps := levelSteps
	if seconds >= longStep {
		steps = longSteps
	}
	if n := len(l.block); n < steps || l.distinct < leastDistinct && n < usualBlocks*levelSteps {
		return
	}
	// Median sorts.
	median, n := math.Log(shared.Median(l.block)), len(l.block)
	shortest := math.Log(l.block[0])
	total := shared.Sum(l.block)
	l.block, l.distinct = l.block[:0], 0
	if !l.first {
		l.first = true
		return
	}
	l.drift.add(shortest, median, n, time.Duration(total*float64(time.Second)))
	l.medians.add(median, usualBlocks, n, total)
	l.group, l.steps, l.seconds = append(l.group, median), l.steps+n, l.seconds+total
	if len(l.group) == lowestOf {
		l.lowest.add(slices.Min(l.group), usualGroups, l.steps, l.seconds)
		l.group, l.steps, l.seconds = l.group[:0], 0, 0
	}
}

// add adds the level of so many steps and seconds, which is compared with usual ones before.
func (l *levels) add(level float64, usual, steps int, seconds float64) {
	if l.shift.size > 0 {
		l.follow(level)
		return
	}
	l.newest = shared.AppendNewest(l.newest, level, usual+newBlocks)
	l.find(steps, seconds)
}

// find finds a shift of the newest levels, of which each has so many steps and seconds.
func (l *levels) find(steps int, seconds float64) {
	n := len(l.newest) - newBlocks
	if n < leastUsual {
		return
	}
	at, slope, spread := line(l.newest[:n])
	beyond := make([]float64, newBlocks)
	for i := range beyond {
		beyond[i] = l.newest[n+i] - at - slope*float64(n+i)
	}
	least := slices.Min(beyond)
	distances := slices.Clone(beyond)
	size := shared.Median(beyond)
	middle := float64(n+newBlocks) / 2
	err := spread * math.Sqrt(1.0/newBlocks+12*middle*middle/float64(n*n*n))
	if size < max(leastShift, beyondOwn*l.largest) || least < eachOf*size || size < shiftErrors*err {
		return
	}
	l.shift = shift{
		size: size, at: at + slope*float64(n+newBlocks), slope: slope, beyond: distances,
		steps: newBlocks * steps, lasted: time.Duration(min(newBlocks*seconds, shiftUsual.Seconds()) * float64(time.Second)),
	}
}

// follow adds a level while there is a shift, and ends it.
func (l *levels) follow(level float64) {
	s := &l.shift
	s.beyond = shared.AppendNewest(s.beyond, level-s.at-s.slope*float64(min(s.blocks, usualBlocks)), keptShift)
	s.blocks++
	switch {
	case s.lasted >= shiftUsual:
		l.newest, l.shift = l.newest[:0], shift{}
	case s.recent() < backAt*s.size:
		if s.lasted < lasting && s.steps < LastingSteps {
			// A short stop makes no slowness of Slower times usual.
			l.largest = max(l.largest, min(s.size, math.Log(Slower)/beyondOwn))
		}
		l.newest = append(l.newest[:max(len(l.newest)-newBlocks, 0)], level)
		l.shift = shift{}
	}
}

// recent is the distance of the last three blocks from the line.
func (s *shift) recent() float64 {
	return shared.Median(slices.Clone(s.beyond[max(len(s.beyond)-3, 0):]))
}

// Shift returns the change of the level, if it is no passing one by itself.
func (l *Level) Shift() Shift {
	if found := l.medians.shift.shown(); found.Steps > 0 {
		return found
	}
	return l.lowest.shift.shown()
}

// shown returns the shift, if it is no passing one by itself.
func (s *shift) shown() Shift {
	if s.size == 0 || s.blocks < 2 || shared.Median(slices.Clone(s.beyond)) < allOf*s.size {
		return Shift{}
	}
	usual := s.at + s.slope*float64(min(s.blocks, usualBlocks))
	return Shift{Usual: math.Exp(usual), Now: math.Exp(usual + s.recent()), Lasted: s.lasted, Steps: s.steps}
}

// add adds the shortest and the median of a block of steps that took a time.
func (d *drift) add(shortest, median float64, steps int, took time.Duration) {
	d.shortest, d.medians = append(d.shortest, shortest), append(d.medians, median)
	d.steps, d.seconds = d.steps+steps, d.seconds+took
	if len(d.shortest) < driftBlocks {
		return
	}
	low := shared.Median(d.shortest)
	d.now = shared.Median(d.medians)
	switch {
	case !d.known || low < d.lowest || d.above >= shiftUsual:
		d.known, d.lowest, d.usual, d.above, d.aboveSteps = true, low, d.now, 0, 0
	case min(low-d.lowest, d.now-d.usual) >= leastDrift:
		d.above, d.aboveSteps = d.above+d.seconds, d.aboveSteps+d.steps
	default:
		d.above, d.aboveSteps = 0, 0
	}
	d.shortest, d.medians, d.steps, d.seconds = d.shortest[:0], d.medians[:0], 0, 0
}

// Drift returns how far the level is above its lowest one, if it has been so for
// driftTime.
func (l *Level) Drift() Shift {
	d := &l.drift
	if d.above < driftTime {
		return Shift{}
	}
	return Shift{Usual: math.Exp(d.usual), Now: math.Exp(d.now), Lasted: d.above, Steps: d.aboveSteps}
}

// Lasts reports whether the change lasts, for so long or for LastingSteps.
func (s *Shift) Lasts(least time.Duration) bool {
	return s.Steps >= LastingSteps || s.Steps >= leastLasting && s.Lasted >= least
}

// line returns a line through values that does not fall, by the median of the slopes of
// all pairs, and the standard deviation from it. Values that follow each other are worth
// fewer (of an autoregression (1-r)/(1+r) of them).
func line(values []float64) (at, slope, spread float64) {
	var slopes [usualBlocks * (usualBlocks - 1) / 2]float64
	pairs := slopes[:0]
	for j := range values {
		for i := range j {
			pairs = append(pairs, (values[j]-values[i])/float64(j-i))
		}
	}
	slope = max(shared.Median(pairs), 0)
	var distances [usualBlocks]float64
	rest := distances[:len(values)]
	for i, value := range values {
		rest[i] = value - slope*float64(i)
	}
	at = shared.Median(rest)
	squares, products, before := 0.0, 0.0, 0.0
	for i, value := range values {
		distance := value - at - slope*float64(i)
		squares += distance * distance
		products += distance * before
		before, rest[i] = distance, math.Abs(distance)
	}
	memory := 0.0
	if squares > 0 {
		memory = min(max(products/squares, 0), mostMemory)
	}
	rms := math.Sqrt(squares / float64(len(values)))
	spread = max(normal*shared.Median(rest), 0.7*rms, leastLevelSpread)
	return at, slope, spread * math.Sqrt((1+memory)/(1-memory))
}
