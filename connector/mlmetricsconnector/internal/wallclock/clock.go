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

	// Cursor is the end of the attributed time, 0 before the first span.
	Cursor  int64
	pending []Span
	ends    []stepEnd
	// Previous is the end of the previous attempt; LostTime reports whether it
	// did not end by itself, so that the time since then is unaccounted.
	Previous int64
	LostTime bool

	// Productive reports whether there was a productive moment.
	Productive bool
	Steps      Stepper
	// Credited is the time after Cursor that Wait attributed to Unknown.
	Credited int64
}

// maxStartup is the longest accepted time between the start of a process and
// its first span: a day, in nanoseconds.
const maxStartup = int64(24 * 3600 * 1e9)

// Observe adds a span. It returns false for a span that ended before the
// attributed time or before its own start; such a span has no effect.
func (c *Clock) Observe(s Span, into *Totals) bool {
	if s.Start <= 0 || s.End < s.Start || s.End <= c.Cursor || s.End <= c.Previous {
		return false
	}
	if len(c.pending) >= maxPending {
		c.Advance(c.Newest(), into)
		if s.End <= c.Cursor {
			return false
		}
	}
	c.Steps.Forwards = c.Steps.Forwards || s.Phase.HasForward()
	c.pending = append(c.pending, s)
	return true
}

// SetBack attributes the pending time and restarts at the next span, even if
// that is earlier: the client's clock was set back.
func (c *Clock) SetBack(into *Totals) {
	forwards, productive := c.Steps.Forwards, c.Productive
	c.Restart(true, into)
	c.Previous, c.Credited = 0, 0
	c.Steps.Forwards, c.Productive = forwards, productive
}

// Restart begins a new attempt. If the previous attempt did not end by itself,
// the time between the two is unknown.
func (c *Clock) Restart(ended bool, into *Totals) {
	c.Advance(c.Newest(), into)
	c.Finish(into)
	*c = Clock{
		Least: c.Least, Idle: c.Idle, NoStartup: c.NoStartup, Born: c.Born,
		Previous: max(c.Previous, c.Cursor), LostTime: !ended,
		pending: c.pending[:0], ends: c.ends[:0],
		Steps: Stepper{Usual: c.Steps.Usual, LastEnd: c.Steps.LastEnd},
		// The time that Wait attributed lies between the attempts.
		Credited: c.Credited,
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
	if c.Steps.LastEnd > 0 && c.Cursor == 0 && len(c.pending) == 0 {
		// The client times no phases.
		c.Steps.learn(end - c.Steps.LastEnd)
	}
	c.Steps.LastEnd = max(c.Steps.LastEnd, end)
	if len(c.ends) >= maxPending {
		c.Advance(c.Newest(), into)
	}
	if len(c.ends) < maxPending && end > c.Cursor {
		c.ends = append(c.ends, stepEnd{end, whole})
	}
}

// Newest returns the end of the newest span, up to which time can be
// attributed.
func (c *Clock) Newest() int64 {
	newest := c.Cursor
	for i := range c.pending {
		newest = max(newest, c.pending[i].End)
	}
	return newest
}

// Patience returns how long the program may be silent before its time is
// unknown, in nanoseconds: five typical steps, and at least Least.
func (c *Clock) Patience() int64 {
	// Limits the median, so that the product does not overflow.
	return max(cmp.Or(c.Least, minPatience), min(c.Steps.median(), 1<<50)*patienceSteps)
}

// Stepped reports whether a step has ended.
func (c *Clock) Stepped() bool { return c.Steps.LastEnd > 0 }

// Finish ends the step that waits for a sign that it is over.
func (c *Clock) Finish(into *Totals) { c.Steps.settle(into) }

// Wait attributes silent time to Unknown. Later time does not count it again.
func (c *Clock) Wait(nanoseconds int64, into *Totals) {
	c.Credited += nanoseconds
	into.States[Unknown] += nanoseconds
}

// Settled returns the clock as it would be if nothing else came, and adds its time. The
// clock goes on.
func (c *Clock) Settled(into *Totals) Clock {
	settled := *c
	settled.pending, settled.ends = slices.Clone(c.pending), slices.Clone(c.ends)
	settled.Advance(settled.Newest(), into)
	return settled
}

// Advance attributes the time up to until, which is at most Newest.
func (c *Clock) Advance(until int64, into *Totals) {
	if len(c.pending) == 0 || until <= c.Cursor || c.Cursor == 0 && !c.begin(until, into) {
		return
	}
	var open moment
	for _, t := range c.changes(until) {
		if t.at > c.Cursor {
			c.spend(&open, t.at-c.Cursor, into)
			c.Cursor = t.at
		}
		switch t.what {
		case closes:
			open.add(&c.pending[t.span], -1)
		case opens:
			open.add(&c.pending[t.span], 1)
		case endsForward:
			c.Steps.settle(into)
		case endsStep:
			// A running optimizer encloses the one that ended, and the step
			// ends with it.
			if open.phases[Optimizer] == 0 {
				c.Steps.end(c.Cursor, t.whole, into)
			}
		}
	}
	c.pending = shrink(slices.DeleteFunc(c.pending, func(s Span) bool { return s.End <= c.Cursor }))
	c.ends = shrink(slices.DeleteFunc(c.ends, func(end stepEnd) bool { return end.at <= c.Cursor }))
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
	first := slices.MinFunc(c.pending, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) }).Start
	first = max(first, c.Previous)
	if until < first {
		return false
	}
	c.Cursor, c.Steps.Start = first, first
	if c.Born > c.Previous && c.Born < first && first-c.Born <= maxStartup {
		into.States[Startup] += first - c.Born
		first = c.Born
	}
	if c.LostTime && c.Previous > 0 {
		into.States[Unknown] += max(first-c.Previous-c.Credited, 0)
	}
	c.Credited = 0
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
		changes = append(changes, change{at: max(s.Start, c.Cursor), what: opens, span: int32(i)}) // #nosec G115 -- at most maxPending
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
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.what, b.what)
	})
	return changes
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
	c.Steps.spend(open, length)
	if state, ok := open.state(); ok {
		c.Credited = 0
		c.Productive = c.Productive || state == Productive || state == Rework
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
		c.Steps.Lost = true
		state = Unknown
	case !c.Productive && !c.NoStartup:
		state = Startup
	case c.Idle:
		state = Idle
	}
	into.States[state] += max(length-c.Credited, 0)
	c.Credited = 0
}

// medianOf is the number of newest steps whose median is the typical step.
const medianOf = 31

// Step has the durations of one step.
type Step struct {
	// Phases are nanoseconds, the union of the spans of each phase; 0 if there
	// is none. That of NoPhase is the rest of the step.
	Phases [phases + 1]int64
	// Whole is the duration of the step, from the end of the previous one, in
	// nanoseconds.
	Whole int64
}

// Stepper divides time into steps.
type Stepper struct {
	// Forwards reports whether the program has shown a forward pass. If so, an
	// optimizer may be one of several of the step, which is over with the next
	// forward pass.
	Forwards bool
	// Under is the current step, Start its start, Lost whether its time is
	// incomplete.
	Under Step
	Start int64
	Lost  bool
	// Held is the step whose optimizer last ended at HeldEnd; 0 means none. HeldLost
	// reports whether its time is incomplete.
	Held     Step
	HeldEnd  int64
	HeldLost bool
	// LastEnd is the end of the latest step.
	LastEnd int64
	Usual   Usual
}

// Usual has the durations of the newest steps, in nanoseconds, and how many were seen.
type Usual struct {
	Times [medianOf]int64
	Seen  int
}

// learn adds the duration of a step, in nanoseconds, to those of the median.
func (s *Stepper) learn(duration int64) {
	if duration > 0 {
		s.Usual.Times[s.Usual.Seen%medianOf] = duration
		s.Usual.Seen++
	}
}

// median returns the duration of a typical step, in nanoseconds, 0 if there is
// none yet.
func (s *Stepper) median() int64 {
	n := min(s.Usual.Seen, medianOf)
	sorted := s.Usual.Times
	slices.Sort(sorted[:n])
	return sorted[n/2]
}

// spend attributes an interval to the phases of the step.
func (s *Stepper) spend(open *moment, length int64) {
	rest := length
	for phase := range phases {
		if open.phases[phase] > 0 {
			s.Under.Phases[phase] += length
			rest = 0
		}
	}
	s.Under.Phases[NoPhase] += rest
}

// end records the end of a step, or of an optimizer while no other one runs.
func (s *Stepper) end(at int64, whole bool, into *Totals) {
	for phase := range s.Held.Phases {
		s.Held.Phases[phase] += s.Under.Phases[phase]
	}
	s.HeldLost = s.HeldLost || s.Lost
	s.HeldEnd = at
	s.Under, s.Lost = Step{}, false
	if whole || !s.Forwards {
		s.settle(into)
	}
}

// settle ends the step whose optimizer has ended, if there is one.
func (s *Stepper) settle(into *Totals) {
	if s.HeldEnd == 0 {
		return
	}
	if !s.HeldLost {
		s.Held.Whole = s.HeldEnd - s.Start
		into.Steps = append(into.Steps, s.Held)
		s.learn(s.Held.Whole)
	}
	s.Start = s.HeldEnd
	s.Held, s.HeldEnd, s.HeldLost = Step{}, 0, false
}
