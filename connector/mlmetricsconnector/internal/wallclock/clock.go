// Package wallclock attributes the time of a run: how much of it was
// productive, what the rest was used for, and how long the phases of each step
// took. It knows only phase, start and end of spans, and reads no clock.
package wallclock

import (
	"cmp"
	"slices"
)

const (
	// maxPending limits the spans and the steps that wait for the next Advance.
	// A full clock advances itself.
	maxPending = 4096
	// minPatience is Clock.Least where that is 0: 5 minutes.
	minPatience = int64(5 * 60 * 1e9)
	// patienceSteps is the shortest silence in typical steps.
	patienceSteps = 5
)

// Totals are the results of Advance.
type Totals struct {
	States Spent
	// Steps are the steps that ended, except those that include unknown time.
	Steps []Step
}

// Span is a timed piece of work, in nanoseconds since 1970.
type Span struct {
	Start, End int64
	// Phase is the phase of the step, or NoPhase.
	Phase Phase
	// State is the use of the time: one of the states with a span.
	State State
	// Whole is true for a span that may contain what is no training, such as a
	// checkpoint. Where another span overlaps it, the other's state counts.
	Whole bool
}

// Clock attributes the time of one rank. Times are nanoseconds since 1970. The
// zero Clock is ready to use. It is not safe for concurrent use.
type Clock struct {
	// Least is the shortest silence after which the run's time is unknown, in
	// nanoseconds; 0 means 5 minutes.
	Least int64
	// Idle selects Idle for a short time without a span, instead of Other.
	Idle bool
	// NoStartup reports whether the time before the first productive moment may
	// be something other than startup.
	NoStartup bool
	// Born is the start of the process, so that the time until its first span
	// is startup; 0 if unknown.
	Born int64

	// cursor is the end of the attributed time; 0 before the first span.
	cursor  int64
	begun   bool
	pending []Span
	ends    []stepEnd
	// previous is the end of the previous attempt; lostTime reports whether it
	// did not end by itself, so that the time since then is unaccounted.
	previous int64
	lostTime bool

	productive bool
	steps      stepper
	// credited is the time after cursor that Wait attributed to Unknown.
	credited int64
}

// maxStartup is the longest accepted time between the start of a process and
// its first span: a day, in nanoseconds.
const maxStartup = int64(24 * 3600 * 1e9)

// Observe adds a span. It returns false for a span that ended before the
// attributed time or before its own start; such a span has no effect.
func (c *Clock) Observe(s Span, into *Totals) bool {
	if s.Start <= 0 || s.End < s.Start || c.begun && s.End <= c.cursor || s.End <= c.previous {
		return false
	}
	if len(c.pending) >= maxPending {
		c.Advance(c.Newest(), into)
		if s.End <= c.cursor {
			return false
		}
	}
	c.steps.forwards = c.steps.forwards || s.Phase.HasForward()
	c.pending = append(c.pending, s)
	return true
}

// SetBack attributes the pending time and restarts at the next span, even if
// that is earlier: the client's clock was set back.
func (c *Clock) SetBack(into *Totals) {
	forwards, productive := c.steps.forwards, c.productive
	c.Restart(true, into)
	c.previous, c.credited = 0, 0
	c.steps.forwards, c.productive = forwards, productive
}

// Restart begins a new attempt. If the previous attempt did not end by itself,
// the time between the two is unknown.
func (c *Clock) Restart(ended bool, into *Totals) {
	c.Advance(c.Newest(), into)
	c.Finish(into)
	*c = Clock{
		Least: c.Least, Idle: c.Idle, NoStartup: c.NoStartup, Born: c.Born,
		previous: max(c.previous, c.cursor), lostTime: !ended,
		pending: c.pending[:0], ends: c.ends[:0],
		steps: stepper{usual: c.steps.usual, lastEnd: c.steps.lastEnd},
		// The time that Wait attributed lies between the attempts.
		credited: c.credited,
	}
}

// stepEnd is the end of a step.
type stepEnd struct {
	at int64
	// whole reports whether the whole step ended.
	whole bool
}

// EndStep adds the end of a step. whole is false for an optimizer, which may be
// one of several of the step.
func (c *Clock) EndStep(end int64, whole bool, into *Totals) {
	if end <= 0 {
		return
	}
	if c.steps.lastEnd > 0 && !c.begun && len(c.pending) == 0 {
		// The client times no phases.
		c.steps.learn(end - c.steps.lastEnd)
	}
	c.steps.lastEnd = max(c.steps.lastEnd, end)
	if len(c.ends) >= maxPending {
		c.Advance(c.Newest(), into)
	}
	if len(c.ends) < maxPending && (!c.begun || end > c.cursor) {
		c.ends = append(c.ends, stepEnd{end, whole})
	}
}

// Newest returns the end of the newest span, up to which time can be
// attributed.
func (c *Clock) Newest() int64 {
	newest := c.cursor
	for i := range c.pending {
		newest = max(newest, c.pending[i].End)
	}
	return newest
}

// Patience returns how long the program may be silent before its time is
// unknown, in nanoseconds: five typical steps, and at least Least.
func (c *Clock) Patience() int64 {
	// Limits the median, so that the product does not overflow.
	return max(cmp.Or(c.Least, minPatience), min(c.steps.median(), 1<<50)*patienceSteps)
}

// Stepped reports whether a step has ended.
func (c *Clock) Stepped() bool { return c.steps.lastEnd > 0 }

// Finish ends the step that waits for a sign that it is over.
func (c *Clock) Finish(into *Totals) { c.steps.settle(into) }

// Wait attributes silent time to Unknown. Later time does not count it again.
func (c *Clock) Wait(nanoseconds int64, into *Totals) {
	c.credited += nanoseconds
	into.States[Unknown] += nanoseconds
}

// Advance attributes the time up to until, which is at most Newest.
func (c *Clock) Advance(until int64, into *Totals) {
	if len(c.pending) == 0 || c.begun && until <= c.cursor || !c.begun && !c.begin(until, into) {
		return
	}
	var open moment
	for _, t := range c.changes(until) {
		if t.at > c.cursor {
			c.spend(&open, t.at-c.cursor, into)
			c.cursor = t.at
		}
		switch t.what {
		case closes:
			open.add(&c.pending[t.span], -1)
		case opens:
			open.add(&c.pending[t.span], 1)
		case endsForward:
			c.steps.settle(into)
		case endsStep:
			// A running optimizer encloses the one that ended, and the step
			// ends with it.
			if open.phases[Optimizer] == 0 {
				c.steps.end(c.cursor, t.whole, into)
			}
		}
	}
	c.pending = shrink(slices.DeleteFunc(c.pending, func(s Span) bool { return s.End <= c.cursor }))
	c.ends = shrink(slices.DeleteFunc(c.ends, func(end stepEnd) bool { return end.at <= c.cursor }))
}

// maxIdle is the number of unused elements whose memory a clock keeps.
const maxIdle = 256

// shrink releases the memory of a burst: there are thousands of clocks.
func shrink[T any](list []T) []T {
	if cap(list) > maxIdle && len(list) < cap(list)/4 {
		// slices.Clone of an empty list would keep its memory.
		return append(make([]T, 0, len(list)), list...)
	}
	return list
}

// begin sets the clock to its first span, unless that is after until. The time
// before is startup as far as the process is known to have run, and unknown
// back to an attempt that did not end.
func (c *Clock) begin(until int64, into *Totals) bool {
	first := c.pending[0].Start
	for i := range c.pending {
		first = min(first, c.pending[i].Start)
	}
	first = max(first, c.previous)
	if until < first {
		return false
	}
	c.begun, c.cursor, c.steps.start = true, first, first
	if c.Born > c.previous && c.Born < first && first-c.Born <= maxStartup {
		into.States[Startup] += first - c.Born
		first = c.Born
	}
	if c.lostTime && c.previous > 0 {
		into.States[Unknown] += max(first-c.previous-c.credited, 0)
	}
	c.credited = 0
	return true
}

// change is a moment at which something begins or ends.
type change struct {
	at   int64
	what what
	// whole is that of the step that ends.
	whole bool
	// span is the index in Clock.pending of the one that opens or closes.
	span int32
}

type what uint8

// The kinds of changes, in their order at the same time: a span that begins
// where a step ends belongs to the next step.
const (
	closes what = iota
	endsForward
	endsStep
	opens
	// passes is a moment without a change.
	passes
)

// changes returns the changes from the cursor to until, in order.
func (c *Clock) changes(until int64) []change {
	changes := make([]change, 0, 3*len(c.pending)+len(c.ends)+1)
	for i := range c.pending {
		s := &c.pending[i]
		if s.Start > until {
			continue
		}
		ended := s.End <= until
		if ended && s.Phase.HasForward() {
			changes = append(changes, change{at: s.End, what: endsForward})
		}
		if s.Start == s.End {
			continue
		}
		changes = append(changes, change{at: max(s.Start, c.cursor), what: opens, span: int32(i)}) // #nosec G115 -- at most maxPending
		if ended {
			changes = append(changes, change{at: s.End, what: closes, span: int32(i)}) // #nosec G115 -- at most maxPending
		}
	}
	for _, end := range c.ends {
		if end.at <= until {
			changes = append(changes, change{at: end.at, what: endsStep, whole: end.whole})
		}
	}
	changes = append(changes, change{at: until, what: passes})
	slices.SortFunc(changes, compareChanges)
	return changes
}

// compareChanges orders changes by time.
func compareChanges(a, b change) int {
	switch {
	case a.at < b.at:
		return -1
	case a.at > b.at:
		return 1
	}
	return int(a.what) - int(b.what)
}

// moment has the number of open spans at a moment.
type moment struct {
	// phases includes one entry for NoPhase.
	phases [phases + 1]int
	states [states]int
	// whole is the number of those in states that are Whole.
	whole [states]int
}

func (m *moment) add(s *Span, n int) {
	m.phases[s.Phase] += n
	m.states[s.State] += n
	if s.Whole {
		m.whole[s.State] += n
	}
}

// state returns the state of the moment, if there is a span.
func (m *moment) state() (state State, ok bool) {
	for s := range Startup {
		switch {
		case m.states[s] > m.whole[s]:
			return s, true
		case m.states[s] > 0 && !ok:
			state, ok = s, true
		}
	}
	return state, ok
}

// spend attributes an interval without changes to a state and to the phases of
// the step.
func (c *Clock) spend(open *moment, length int64, into *Totals) {
	c.steps.spend(open, length)
	if state, ok := open.state(); ok {
		c.credited = 0
		c.productive = c.productive || state == Productive || state == Rework
		into.States[state] += length
		return
	}
	c.spendGap(length, into)
}

// spendGap attributes time without a span to a state.
func (c *Clock) spendGap(length int64, into *Totals) {
	state := Other
	switch {
	case length > c.Patience():
		c.steps.lost = true
		state = Unknown
	case !c.productive && !c.NoStartup:
		state = Startup
	case c.Idle:
		state = Idle
	}
	into.States[state] += max(length-c.credited, 0)
	c.credited = 0
}

// medianOf is the number of newest steps whose median is the typical step.
const medianOf = 31

// Step has the durations of one step.
type Step struct {
	// Phases are nanoseconds, the union of the spans of each phase; 0 if there
	// is none.
	Phases [phases]int64
	// Other is the rest of the step, in nanoseconds.
	Other int64
	// Whole is the duration of the step, from the end of the previous one, in
	// nanoseconds.
	Whole int64
}

// stepper divides time into steps.
type stepper struct {
	// forwards reports whether the program has shown a forward pass. If so, an
	// optimizer may be one of several of the step, which is over with the next
	// forward pass.
	forwards bool
	// under is the current step, start its start, lost whether its time is
	// incomplete.
	under Step
	start int64
	lost  bool
	// held is the step whose optimizer last ended at heldEnd; 0 means none.
	held     Step
	heldEnd  int64
	heldLost bool

	lastEnd int64
	usual   usual
}

// usual has the durations of the newest steps, in nanoseconds.
type usual struct {
	times [medianOf]int64
	seen  int
}

// learn adds the duration of a step, in nanoseconds, to those of the median.
func (s *stepper) learn(duration int64) {
	if duration > 0 {
		s.usual.times[s.usual.seen%medianOf] = duration
		s.usual.seen++
	}
}

// median returns the duration of a typical step, in nanoseconds, 0 if there is
// none yet.
func (s *stepper) median() int64 {
	n := min(s.usual.seen, medianOf)
	if n == 0 {
		return 0
	}
	sorted := s.usual.times
	slices.Sort(sorted[:n])
	return sorted[n/2]
}

// spend attributes an interval to the phases of the step.
func (s *stepper) spend(open *moment, length int64) {
	timed := false
	for phase := range phases {
		if open.phases[phase] > 0 {
			s.under.Phases[phase] += length
			timed = true
		}
	}
	if !timed {
		s.under.Other += length
	}
}

// end records the end of a step, or of an optimizer while no other one runs.
func (s *stepper) end(at int64, whole bool, into *Totals) {
	for phase := range s.held.Phases {
		s.held.Phases[phase] += s.under.Phases[phase]
	}
	s.held.Other += s.under.Other
	s.heldLost = s.heldLost || s.lost
	s.heldEnd = at
	s.under, s.lost = Step{}, false
	if whole || !s.forwards {
		s.settle(into)
	}
}

// settle ends the step whose optimizer has ended, if there is one.
func (s *stepper) settle(into *Totals) {
	if s.heldEnd == 0 {
		return
	}
	if !s.heldLost {
		s.held.Whole = s.heldEnd - s.start
		into.Steps = append(into.Steps, s.held)
		s.learn(s.held.Whole)
	}
	s.start = s.heldEnd
	s.held, s.heldEnd, s.heldLost = Step{}, 0, false
}
