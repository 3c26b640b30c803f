package wallclock

import (
	"cmp"
	"slices"
)

const (
	// maxPending bounds the spans and the steps that wait for the next
	// Advance. A full clock advances by itself.
	maxPending = 4096
	// minPatience is the shortest time without a span after which nothing is
	// known about a run, in nanoseconds: 5 minutes.
	minPatience = int64(5 * 60 * 1e9)
	// patienceSteps is the same in usual steps.
	patienceSteps = 5
)

// Totals is what an Advance has found out.
type Totals struct {
	// States are nanoseconds.
	States [states]int64
	// Steps are the steps that ended, except those with a time in them of
	// which nothing is known.
	Steps []Step
}

// Span is a piece of work that was timed, in nanoseconds since 1970.
type Span struct {
	Start, End int64
	// Phase is that of the step, or NoPhase.
	Phase Phase
	// State is what the time was used for. It is one of those with a span.
	State State
}

// Clock divides the time of one process of a run. Times are nanoseconds since
// 1970. The zero Clock is ready to use. It is not safe for concurrent use.
type Clock struct {
	// Idle is true where a short time without a span is idle, and false where
	// it may be anything: Other.
	Idle bool
	// NoStartup is true where the time before the first productive moment may
	// be something else.
	NoStartup bool
	// Born is when the process began, so that the time until its first span is
	// known to be startup; 0 where nobody says it.
	Born int64

	// cursor is up to when the time is divided; 0 before the first span.
	cursor  int64
	begun   bool
	pending []Span
	ends    []stepEnd
	// previous is the end of the attempt before; lostTime is true where it did not
	// end by itself, so that the time since is not accounted for.
	previous int64
	lostTime bool

	productive bool
	steps      stepper
	// credited is the time after cursor that Wait has called unknown.
	credited int64
}

// maxStartup is the longest time between the start of a process and its first
// span that is believed: a day, in nanoseconds.
const maxStartup = int64(24 * 3600 * 1e9)

// Observe adds a span. One that ended before what is already divided is too
// late and has no effect, and so has one whose end is before its start; it
// returns false for these.
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

// SetBack divides what has come and then begins anew wherever the next span
// is, also before it: the clock that the spans are timed by was set back.
func (c *Clock) SetBack(into *Totals) {
	forwards, productive := c.steps.forwards, c.productive
	c.Restart(true, into)
	c.previous, c.credited = 0, 0
	c.steps.forwards, c.productive = forwards, productive
}

// Restart begins another attempt: what comes from now on is divided anew.
// Where the attempt before did not end by itself, the time between them is
// unknown.
func (c *Clock) Restart(ended bool, into *Totals) {
	c.Advance(c.Newest(), into)
	c.Finish(into)
	*c = Clock{
		Idle: c.Idle, NoStartup: c.NoStartup, Born: c.Born,
		previous: max(c.previous, c.cursor), lostTime: !ended,
		pending: c.pending[:0], ends: c.ends[:0],
		steps: stepper{usual: c.steps.usual, lastEnd: c.steps.lastEnd},
		// What Wait has called unknown lies between the attempts.
		credited: c.credited,
	}
}

// stepEnd is the end of a step.
type stepEnd struct {
	at int64
	// whole is true where what ended is the whole step.
	whole bool
}

// EndStep adds the end of a step. whole is false where it is that of an
// optimizer, which may be one of several of the step.
func (c *Clock) EndStep(end int64, whole bool, into *Totals) {
	if end <= 0 {
		return
	}
	if c.steps.lastEnd > 0 && !c.begun && len(c.pending) == 0 {
		// A client that times no phase.
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

// Newest is the end of the newest span, up to which the time can be divided.
func (c *Clock) Newest() int64 {
	newest := c.cursor
	for i := range c.pending {
		newest = max(newest, c.pending[i].End)
	}
	return newest
}

// Patience is for how long the program may be silent before nothing is known
// about it any more, in nanoseconds: five usual steps, and at least 5 minutes.
func (c *Clock) Patience() int64 {
	// A median of years cannot be multiplied; it is no median of steps.
	return max(minPatience, min(c.steps.median(), 1<<50)*patienceSteps)
}

// Stepped reports whether a step has ended.
func (c *Clock) Stepped() bool { return c.steps.lastEnd > 0 }

// Finish ends the step that waits for a sign that it is over.
func (c *Clock) Finish(into *Totals) { c.steps.settle(into) }

// Wait calls time unknown that has gone by without a span. What comes later
// does not count it again.
func (c *Clock) Wait(nanoseconds int64, into *Totals) {
	c.credited += nanoseconds
	into.States[Unknown] += nanoseconds
}

// Advance divides the time up to until, which is at most Newest.
func (c *Clock) Advance(until int64, into *Totals) {
	if len(c.pending) == 0 || c.begun && until <= c.cursor || !c.begun && !c.begin(until, into) {
		return
	}
	var open moment
	for _, t := range c.turns(until) {
		if t.at > c.cursor {
			c.spend(&open, t.at-c.cursor, into)
			c.cursor = t.at
		}
		switch t.what {
		case closes:
			open.add(t.span, -1)
		case opens:
			open.add(t.span, 1)
		case endsForward:
			c.steps.settle(into)
		case endsStep:
			// An optimizer that goes on is above the one that ended, and the
			// step ends with it.
			if open.phases[Optimizer] == 0 {
				c.steps.end(c.cursor, t.whole, into)
			}
		}
	}
	c.pending = shrink(slices.DeleteFunc(c.pending, func(s Span) bool { return s.End <= c.cursor }))
	c.ends = shrink(slices.DeleteFunc(c.ends, func(end stepEnd) bool { return end.at <= c.cursor }))
}

// maxIdle is how many elements' memory a clock keeps that it does not need.
const maxIdle = 256

// shrink gives the memory back that a burst has left: there are thousands of
// clocks, and each may have had one.
func shrink[T any](list []T) []T {
	if cap(list) > maxIdle && len(list) < cap(list)/4 {
		// slices.Clone of an empty list would keep its memory.
		return append(make([]T, 0, len(list)), list...)
	}
	return list
}

// begin sets the clock to its first span, unless that is not yet to be
// divided. The time before is startup as far as the process is known to have
// been there, and unknown back to an attempt that did not end.
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

// turn is a moment at which something begins or ends.
type turn struct {
	at   int64
	what what
	// span is the one that opens or closes.
	span *Span
	// whole is that of the step that ends.
	whole bool
}

type what uint8

// What can happen, in the order in which it does at the same time: a span that
// begins where a step ends belongs to the next one.
const (
	closes what = iota
	endsForward
	endsStep
	opens
	// passes is a moment at which nothing happens.
	passes
)

// turns are what happens from the cursor to until, in its order.
func (c *Clock) turns(until int64) []turn {
	turns := make([]turn, 0, 3*len(c.pending)+len(c.ends)+1)
	for i := range c.pending {
		s := &c.pending[i]
		if s.Start > until {
			continue
		}
		ended := s.End <= until
		if ended && s.Phase.HasForward() {
			turns = append(turns, turn{at: s.End, what: endsForward})
		}
		if s.Start == s.End {
			continue
		}
		turns = append(turns, turn{at: max(s.Start, c.cursor), what: opens, span: s})
		if ended {
			turns = append(turns, turn{at: s.End, what: closes, span: s})
		}
	}
	for _, end := range c.ends {
		if end.at <= until {
			turns = append(turns, turn{at: end.at, what: endsStep, whole: end.whole})
		}
	}
	turns = append(turns, turn{at: until, what: passes})
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what))
	})
	return turns
}

// moment is what goes on at a moment: the number of open spans.
type moment struct {
	// phases has one place more, for NoPhase.
	phases [phases + 1]int
	states [states]int
}

func (m *moment) add(s *Span, n int) {
	m.phases[s.Phase] += n
	m.states[s.State] += n
}

// spend gives a piece of time, in which nothing begins or ends, to a state and
// to the phases of the step.
func (c *Clock) spend(open *moment, length int64, into *Totals) {
	c.steps.spend(open, length)
	for state := range Startup {
		if open.states[state] > 0 {
			c.credited = 0
			c.productive = c.productive || state == Productive || state == Rework
			into.States[state] += length
			return
		}
	}
	c.spendGap(length, into)
}

// spendGap gives time without a span to a state.
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
