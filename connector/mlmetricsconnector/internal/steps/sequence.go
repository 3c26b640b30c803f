// Package steps counts training steps from the spans of optimizers and forward
// passes, in whatever order these arrive.
package steps

import "slices"

// maxEvents limits the spans that a Sequence remembers, far above the number
// that arrives out of order.
const maxEvents = 256

// firstEvents is for how many spans a forward pass makes memory at first.
const firstEvents = 8

// keptEvents is how many of the newest spans a restart does not forget.
const keptEvents = 8

// Kind is the role of a span in a step.
type Kind uint8

const (
	// Forward is a forward pass, or a span that contains one. An optimizer
	// after it ends another step.
	Forward Kind = iota
	// Optimizer is a span of an optimizer, which may end a step.
	Optimizer
)

// Sequence counts the steps of one program. Each optimizer ends a step, with
// two exceptions: an optimizer inside another one (AdamW's step calls Adam's),
// and several optimizers without a forward pass between their ends, which end
// one step together. In a program without forward passes each optimizer ends a
// step.
//
// The count includes the spans so far, in any order: a late forward pass may
// divide a step into two. If the count is too high because a span that joins
// two steps arrived late, the following steps compensate for it. The zero
// Sequence is ready to use. It is not safe for concurrent use.
type Sequence struct {
	// Events are the newest spans by end time, a forward pass before an
	// optimizer with the same end.
	Events []event
	// Recent is the number of steps that end with Events, Settled that of steps
	// that end with forgotten spans.
	Recent, Settled int64
	// Horizon is the end of the newest forgotten span, 0 if there is none.
	// Before is its kind.
	Horizon int64
	Before  Kind
	// Forwards reports whether there was a forward pass.
	Forwards bool
	// Numbers counts the steps that the program numbers.
	Numbers numbers
	// Counted is the number that was returned so far.
	Counted int64
	// Last is the number of the step that the newest forward pass states, 0 if none does: an
	// optimizer without one has it.
	Last int64
	// Late has the spans that came too late for Events since the last one that did not, as all
	// do for an hour after a clock was set back by one. IsLate is set in Late, which has none.
	Late   *Sequence
	IsLate bool
}

type event struct {
	Start, End int64
	Kind       Kind
}

// Add adds a span with times in nanoseconds since 1970, and returns the number
// of further steps. An unknown start is 0. A span that ended before all
// remembered ones is too late for a comparison with them; it is compared with
// others like it. An optimizer that is too late for these, too, counts as a step.
func (s *Sequence) Add(kind Kind, start, end int64) (more int64) {
	if start <= 0 || start > end {
		start = end
	}
	e := event{start, end, kind}
	switch late := s.Horizon > 0 && end <= s.Horizon; {
	case late && !s.IsLate:
		if s.Late == nil {
			s.Late = &Sequence{IsLate: true}
		}
		s.Settled += s.Late.Add(kind, start, end)
	case late && kind == Optimizer:
		s.Settled++
	case late:
	case kind == Forward:
		s.Late = nil
		s.addForward(e)
	default:
		s.Late = nil
		s.addOptimizer(e)
	}
	if len(s.Events) > maxEvents {
		s.forget(maxEvents / 2)
	}
	return s.more()
}

// AddNumbered adds an optimizer whose program numbers its steps, from 1 within
// an attempt of a run, and returns the number of further steps. There are at
// least as many steps as numbers, whatever the spans' times: after a clock was
// set back, they lie among those of earlier steps.
func (s *Sequence) AddNumbered(start, end, number, attempt int64) (more int64) {
	if !s.Numbers.Begun {
		s.Numbers.Counted = s.Settled + s.Recent // the steps before the first number
	}
	s.Numbers.add(number, attempt, end)
	return s.Add(Optimizer, start, end)
}

// more returns the number of steps that were not returned yet.
func (s *Sequence) more() int64 {
	more := max(s.Settled+s.Recent-s.Counted, s.Numbers.Counted-s.Counted, 0)
	s.Counted += more
	return more
}

// indexOf returns the index at which an event belongs.
func (s *Sequence) indexOf(e event) int {
	at := len(s.Events)
	for at > 0 && (s.Events[at-1].End > e.End || s.Events[at-1].End == e.End && s.Events[at-1].Kind > e.Kind) {
		at--
	}
	return at
}

// addForward omits a forward pass inside another one, as of modules that call
// each other, if nothing else ended in between.
func (s *Sequence) addForward(e event) {
	at := s.indexOf(e)
	if at < len(s.Events) && s.Events[at].Kind == Forward && s.Events[at].Start <= e.Start {
		return
	}
	from := at
	for from > 0 && s.Events[from-1].Kind == Forward && s.Events[from-1].Start >= e.Start {
		from--
	}
	joined := at < len(s.Events) && !s.ends(at, Optimizer)
	if s.Events == nil {
		s.Events = make([]event, 0, firstEvents)
	}
	s.Events = slices.Replace(s.Events, from, at, e)
	switch {
	case !s.Forwards:
		s.Forwards = true
		s.Recent = s.steps(s.Events)
	case joined && s.Events[from+1].Kind == Optimizer:
		// The optimizer after it ended a step together with the one before. Now it ends its own.
		s.Recent++
	}
}

// addOptimizer omits an optimizer inside another one, whatever ended in
// between.
func (s *Sequence) addOptimizer(e event) {
	at := s.indexOf(e)
	for _, later := range s.Events[at:] {
		if later.Kind == Optimizer && later.Start <= e.Start {
			return
		}
	}
	from := at
	for from > 0 && s.Events[from-1].End >= e.Start {
		from--
	}
	inner := func(earlier event) bool { return earlier.Kind == Optimizer && earlier.Start >= e.Start }
	if at == len(s.Events) && !slices.ContainsFunc(s.Events[from:], inner) {
		if s.ends(at, e.Kind) {
			s.Recent++
		}
		s.Events = append(s.Events, e)
		return
	}
	kept := slices.DeleteFunc(s.Events[from:at:at], inner)
	s.Events = slices.Replace(s.Events, from+len(kept), at, e)
	s.Recent = s.steps(s.Events)
}

// ends reports whether an event of the kind at an index is the first of its
// step to end.
func (s *Sequence) ends(at int, kind Kind) bool {
	after := s.Before
	if at > 0 {
		after = s.Events[at-1].Kind
	}
	return kind == Optimizer && (after == Forward || !s.Forwards)
}

// steps returns the number of steps that end with the oldest events. A step
// counts with the first of its optimizers.
func (s *Sequence) steps(oldest []event) (n int64) {
	for i := range oldest {
		if s.ends(i, oldest[i].Kind) {
			n++
		}
	}
	return n
}

// forget removes the n oldest events and settles their steps.
func (s *Sequence) forget(n int) {
	steps := s.steps(s.Events[:n])
	s.Settled += steps
	s.Recent -= steps
	s.Horizon, s.Before = s.Events[n-1].End, s.Events[n-1].Kind
	s.Events = slices.Delete(s.Events, 0, n)
}

// Kept returns the sequence with as few events as a restart needs.
func (s *Sequence) Kept() Sequence {
	kept := *s
	kept.Late, kept.Events = nil, slices.Clone(s.Events)
	if over := len(kept.Events) - keptEvents; over > 0 {
		kept.forget(over)
	}
	return kept
}

// rememberedNumbers is how many of the highest numbers are remembered, for
// steps that arrive out of order.
const rememberedNumbers = 64

// numbers counts steps by the numbers that their program assigns.
type numbers struct {
	Begun bool
	// Newest is the highest number since the program went back, End the end of
	// that step, and Attempt its attempt.
	Newest, End, Attempt int64
	// Seen has a bit for Newest and each number below it.
	Seen uint64
	// Counted is the number of steps.
	Counted int64
}

// add adds the end of a step. If its number is lower than the newest and it
// ended later, the program went back, to a checkpoint or to another loop.
func (n *numbers) add(number, attempt, end int64) {
	behind := n.Newest - number
	switch {
	case !n.Begun, attempt > n.Attempt, behind > 0 && end > n.End:
		*n = numbers{Begun: true, Newest: number, End: end, Attempt: attempt, Seen: 1, Counted: n.Counted}
	case behind < 0:
		n.Seen = n.Seen<<min(-behind, rememberedNumbers) | 1
		n.Newest, n.End = number, end
	case behind >= rememberedNumbers:
	// Too old to be remembered, so it counts.
	case n.Seen&(1<<behind) != 0:
		return
	default:
		n.Seen |= 1 << behind
	}
	n.Counted++
}
