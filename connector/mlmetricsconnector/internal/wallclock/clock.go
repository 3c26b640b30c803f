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
	slices.SortFunc(c.pending, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	slices.Sort(c.ends)
	if !c.begun {
		c.begun, c.cursor = true, c.pending[0].start
		c.stepStart = c.cursor
	}

	w := walk{clock: c, into: into}
	for _, at := range c.turns(until) {
		w.to(at)
	}
	c.pending = slices.DeleteFunc(c.pending, func(s span) bool { return s.end <= c.cursor })
	c.ends = slices.DeleteFunc(c.ends, func(end int64) bool { return end <= c.cursor })
}

// turns are the moments up to until at which something begins or ends.
func (c *Clock) turns(until int64) []int64 {
	turns := make([]int64, 0, 2*len(c.pending)+len(c.ends)+1)
	add := func(at int64) {
		if at > c.cursor && at <= until {
			turns = append(turns, at)
		}
	}
	for i := range c.pending {
		add(c.pending[i].start)
		add(c.pending[i].end)
	}
	for _, end := range c.ends {
		add(end)
	}
	add(until)
	slices.Sort(turns)
	return slices.Compact(turns)
}

// walk goes over the time from one turn to the next.
type walk struct {
	clock *Clock
	into  *Totals
	// next is the first pending span that has not begun.
	next   int
	active []span
	end    int
}

// to divides the time from the cursor to the next turn.
func (w *walk) to(at int64) {
	c := w.clock
	w.active = slices.DeleteFunc(w.active, func(s span) bool { return s.end <= c.cursor })
	for w.next < len(c.pending) && c.pending[w.next].start <= c.cursor {
		if s := c.pending[w.next]; s.end > c.cursor {
			w.active = append(w.active, s)
		}
		w.next++
	}
	c.spend(w.active, at-c.cursor, w.into)
	c.cursor = at
	for w.end < len(c.ends) && c.ends[w.end] <= at {
		w.end++
		if c.optimizing(at) {
			// The end of an optimizer below another one, whose end is later.
			continue
		}
		if !c.lost {
			w.into.Steps = append(w.into.Steps, c.step)
			c.learn(at - c.stepStart)
		}
		c.stepStart = at
		c.step, c.lost = Step{}, false
	}
}

// optimizing reports whether an optimizer's span goes on at a time.
func (c *Clock) optimizing(at int64) bool {
	return slices.ContainsFunc(c.pending, func(s span) bool {
		return s.phase == Optimizer && s.start < at && s.end > at
	})
}

// spend gives a piece of time, in which nothing begins or ends, to a state and
// to the phases of the step.
func (c *Clock) spend(active []span, length int64, into *Totals) {
	if len(active) == 0 {
		c.spendGap(length, into)
		return
	}
	c.credited = 0
	state := states
	var seen [phases]bool
	for i := range active {
		phase := active[i].phase
		state = min(state, phase.state())
		if !seen[phase] {
			seen[phase] = true
			c.step.Phases[phase] += length
		}
	}
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
