package wallclock

import (
	"cmp"
	"slices"
)

const (
	// maxPending bounds the spans and the steps that wait for the next
	// Advance. A full clock advances by itself.
	maxPending = 4096
	// medianOf is how many of the newest steps the usual time of a step is
	// taken from.
	medianOf = 31
	// minPatience is the shortest time without a span after which nothing is
	// known about a run, in nanoseconds: 5 minutes.
	minPatience = int64(5 * 60 * 1e9)
	// patienceSteps is the same in usual steps.
	patienceSteps = 5
)

// Step is how long the phases of one step took.
type Step struct {
	// Phases are nanoseconds, the union of the spans of each phase; 0 where
	// there was none.
	Phases [phases]int64
	// Other is the rest of the step, in nanoseconds.
	Other int64
}

// Totals is what an Advance has found out.
type Totals struct {
	// States are nanoseconds.
	States [states]int64
	// Steps are the steps that ended, except those with a time in them of
	// which nothing is known.
	Steps []Step
}

// Clock divides the time of one process of a run. Times are nanoseconds since
// 1970. The zero Clock is ready to use. It is not safe for concurrent use.
type Clock struct {
	// cursor is up to when the time is divided; 0 before the first span.
	cursor  int64
	begun   bool
	pending []span
	ends    []int64

	productive bool
	// step is the step that is under way, stepStart when it began, lost
	// whether it cannot be told.
	step      Step
	stepStart int64
	lost      bool
	// credited is the time after cursor that Wait has called unknown.
	credited int64

	lastEnd   int64
	durations [medianOf]int64
	steps     int
}

type span struct {
	start, end int64
	phase      Phase
}

// Observe adds a span. One that ended before what is already divided is too
// late and has no effect, and so has one whose end is before its start.
func (c *Clock) Observe(phase Phase, start, end int64, into *Totals) {
	if start <= 0 || end < start || c.begun && end <= c.cursor {
		return
	}
	if len(c.pending) >= maxPending {
		c.Advance(c.Newest(), into)
		if end <= c.cursor {
			return
		}
	}
	c.pending = append(c.pending, span{start, end, phase})
}

// EndStep adds the end of a step.
func (c *Clock) EndStep(end int64, into *Totals) {
	if end <= 0 {
		return
	}
	if c.lastEnd > 0 && !c.begun && len(c.pending) == 0 {
		// A client that times no phase.
		c.learn(end - c.lastEnd)
	}
	c.lastEnd = max(c.lastEnd, end)
	if len(c.ends) >= maxPending {
		c.Advance(c.Newest(), into)
	}
	if len(c.ends) < maxPending && (!c.begun || end > c.cursor) {
		c.ends = append(c.ends, end)
	}
}

// learn adds the time of a step, in nanoseconds, to those that Patience is
// taken from.
func (c *Clock) learn(duration int64) {
	if duration > 0 {
		c.durations[c.steps%medianOf] = duration
		c.steps++
	}
}

// Newest is the end of the newest span, up to which the time can be divided.
func (c *Clock) Newest() int64 {
	newest := c.cursor
	for i := range c.pending {
		newest = max(newest, c.pending[i].end)
	}
	return newest
}

// Patience is for how long the program may be silent before nothing is known
// about it any more, in nanoseconds: five usual steps, and at least 5 minutes.
func (c *Clock) Patience() int64 {
	n := min(c.steps, medianOf)
	if n == 0 {
		return minPatience
	}
	sorted := c.durations
	slices.Sort(sorted[:n])
	median := sorted[n/2]
	// A median of years cannot be multiplied; it is no median of steps.
	return max(minPatience, min(median, 1<<50)*patienceSteps)
}

// Stepped reports whether a step has ended.
func (c *Clock) Stepped() bool { return c.lastEnd > 0 }

// Wait calls time unknown that has gone by without a span. What comes later
// does not count it again.
func (c *Clock) Wait(nanoseconds int64, into *Totals) {
	c.credited += nanoseconds
	into.States[Unknown] += nanoseconds
}

// Advance divides the time up to until, which is at most Newest.
func (c *Clock) Advance(until int64, into *Totals) {
	if len(c.pending) == 0 || c.begun && until <= c.cursor {
		return
	}
	if !c.begun {
		c.begun, c.cursor = true, c.earliest()
		c.stepStart = c.cursor
	}
	var open [phases]int
	for _, t := range c.turns(until) {
		if t.at > c.cursor {
			c.spend(&open, t.at-c.cursor, into)
			c.cursor = t.at
		}
		switch t.what {
		case closes:
			open[t.phase]--
		case opens:
			open[t.phase]++
		case endsStep:
			// An optimizer that goes on is above the one that ended, and the
			// step ends with it.
			if open[Optimizer] == 0 {
				c.endStep(into)
			}
		}
	}
	c.pending = slices.DeleteFunc(c.pending, func(s span) bool { return s.end <= c.cursor })
	c.ends = slices.DeleteFunc(c.ends, func(end int64) bool { return end <= c.cursor })
}

func (c *Clock) earliest() int64 {
	first := c.pending[0].start
	for i := range c.pending {
		first = min(first, c.pending[i].start)
	}
	return first
}

// turn is a moment at which something begins or ends.
type turn struct {
	at    int64
	what  what
	phase Phase
}

type what uint8

// What can happen, in the order in which it does at the same time: a span that
// begins where a step ends belongs to the next one.
const (
	closes what = iota
	endsStep
	opens
	// passes is a moment at which nothing happens.
	passes
)

// turns are what happens from the cursor to until, in its order.
func (c *Clock) turns(until int64) []turn {
	turns := make([]turn, 0, 2*len(c.pending)+len(c.ends)+1)
	for i := range c.pending {
		s := &c.pending[i]
		if s.start > until || s.start == s.end {
			continue
		}
		turns = append(turns, turn{max(s.start, c.cursor), opens, s.phase})
		if s.end <= until {
			turns = append(turns, turn{s.end, closes, s.phase})
		}
	}
	for _, end := range c.ends {
		if end <= until {
			turns = append(turns, turn{at: end, what: endsStep})
		}
	}
	turns = append(turns, turn{at: until, what: passes})
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what))
	})
	return turns
}

// endStep ends the step at the cursor.
func (c *Clock) endStep(into *Totals) {
	if !c.lost {
		into.Steps = append(into.Steps, c.step)
		c.learn(c.cursor - c.stepStart)
	}
	c.stepStart = c.cursor
	c.step, c.lost = Step{}, false
}

// spend gives a piece of time, in which nothing begins or ends, to a state and
// to the phases of the step.
func (c *Clock) spend(open *[phases]int, length int64, into *Totals) {
	state := states
	for phase := range phases {
		if open[phase] > 0 {
			state = min(state, phase.state())
			c.step.Phases[phase] += length
		}
	}
	if state == states {
		c.spendGap(length, into)
		return
	}
	c.credited = 0
	c.productive = c.productive || state == Productive
	into.States[state] += length
}

// spendGap gives time without a span to a state.
func (c *Clock) spendGap(length int64, into *Totals) {
	if length > c.Patience() {
		c.lost = true
		into.States[Unknown] += max(length-c.credited, 0)
		c.credited = 0
		return
	}
	c.step.Other += length
	length = max(length-c.credited, 0)
	c.credited = 0
	if c.productive {
		into.States[Other] += length
	} else {
		into.States[Startup] += length
	}
}
