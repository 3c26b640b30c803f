// Package steps counts training steps from the spans of optimizers and forward
// passes, in whatever order these arrive.
package steps

import (
	"slices"
)

// maxEvents limits the spans that a Sequence remembers, far above the number
// that arrives out of order.
const maxEvents = 256

// firstEvents is for how many spans a forward pass makes memory at first.
const firstEvents = 8

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
	// events are the newest spans by end time, a forward pass before an
	// optimizer with the same end.
	events []event
	// recent is the number of steps that end with events, settled that of steps
	// that end with forgotten spans.
	recent, settled int64
	// horizon is the end of the newest forgotten span, 0 if there is none.
	// before is its kind.
	horizon int64
	before  Kind
	// forwards reports whether there was a forward pass.
	forwards bool
	// numbers counts the steps that the program numbers.
	numbers numbers
	// counted is the number that was returned so far.
	counted int64
}

type event struct {
	start, end int64
	kind       Kind
}

// Add adds a span with times in nanoseconds since 1970, and returns the number
// of further steps. An unknown start is 0. A span that ended before all
// remembered ones is too late for a comparison; such an optimizer counts as a
// step.
func (s *Sequence) Add(kind Kind, start, end int64) (more int64) {
	if start <= 0 || start > end {
		start = end
	}
	e := event{start, end, kind}
	switch {
	case s.horizon > 0 && end <= s.horizon:
		if kind == Optimizer {
			s.settled++
		}
	case kind == Forward:
		s.addForward(e)
	default:
		s.addOptimizer(e)
	}
	if len(s.events) > maxEvents {
		s.forget(maxEvents / 2)
	}
	return s.more()
}

// AddNumbered adds an optimizer whose program numbers its steps, from 1 within
// an attempt of a run, and returns the number of further steps. There are at
// least as many steps as numbers, whatever the spans' times: after a clock was
// set back, they lie among those of earlier steps.
func (s *Sequence) AddNumbered(start, end, number, attempt int64) (more int64) {
	s.numbers.begin(s.settled + s.recent)
	s.numbers.add(number, attempt, end)
	return s.Add(Optimizer, start, end)
}

// more returns the number of steps that were not returned yet.
func (s *Sequence) more() int64 {
	more := max(s.settled+s.recent-s.counted, s.numbers.counted-s.counted, 0)
	s.counted += more
	return more
}

// indexOf returns the index at which an event belongs.
func (s *Sequence) indexOf(e event) int {
	at := len(s.events)
	for at > 0 && s.events[at-1].after(&e) {
		at--
	}
	return at
}

// after reports whether an event comes after another one.
func (e *event) after(other *event) bool {
	return e.end > other.end || e.end == other.end && e.kind > other.kind
}

// addForward omits a forward pass inside another one, as of modules that call
// each other, if nothing else ended in between.
func (s *Sequence) addForward(e event) {
	at := s.indexOf(e)
	if at < len(s.events) && s.events[at].kind == Forward && s.events[at].start <= e.start {
		return
	}
	from := at
	for from > 0 && s.events[from-1].kind == Forward && s.events[from-1].start >= e.start {
		from--
	}
	joined := at < len(s.events) && !s.ends(at, Optimizer)
	if s.events == nil {
		s.events = make([]event, 0, firstEvents)
	}
	if from == len(s.events) {
		s.events = append(s.events, e)
	} else {
		s.events = slices.Replace(s.events, from, at, e)
	}
	switch {
	case !s.forwards:
		s.forwards = true
		s.recent = s.steps(s.events)
	case joined && s.events[from+1].kind == Optimizer:
		// The optimizer after it ended a step together with the one before. Now it ends its own.
		s.recent++
	}
}

// addOptimizer omits an optimizer inside another one, whatever ended in
// between.
func (s *Sequence) addOptimizer(e event) {
	at := s.indexOf(e)
	for _, later := range s.events[at:] {
		if later.kind == Optimizer && later.start <= e.start {
			return
		}
	}
	from := at
	for from > 0 && s.events[from-1].end >= e.start {
		from--
	}
	inner := func(earlier event) bool { return earlier.kind == Optimizer && earlier.start >= e.start }
	if at == len(s.events) && !slices.ContainsFunc(s.events[from:], inner) {
		if s.ends(at, e.kind) {
			s.recent++
		}
		s.events = append(s.events, e)
		return
	}
	kept := slices.DeleteFunc(s.events[from:at:at], inner)
	s.events = slices.Replace(s.events, from+len(kept), at, e)
	s.recent = s.steps(s.events)
}

// ends reports whether an event of the kind at an index is the first of its
// step to end.
func (s *Sequence) ends(at int, kind Kind) bool {
	after := s.before
	if at > 0 {
		after = s.events[at-1].kind
	}
	return kind == Optimizer && (after == Forward || !s.forwards)
}

// steps returns the number of steps that end with the oldest events. A step
// counts with the first of its optimizers.
func (s *Sequence) steps(oldest []event) (n int64) {
	for i := range oldest {
		if s.ends(i, oldest[i].kind) {
			n++
		}
	}
	return n
}

// forget removes the n oldest events and settles their steps.
func (s *Sequence) forget(n int) {
	steps := s.steps(s.events[:n])
	s.settled += steps
	s.recent -= steps
	s.horizon, s.before = s.events[n-1].end, s.events[n-1].kind
	s.events = slices.Delete(s.events, 0, n)
}

// rememberedNumbers is how many of the highest numbers are remembered, for
// steps that arrive out of order.
const rememberedNumbers = 64

// numbers counts steps by the numbers that their program assigns.
type numbers struct {
	begun bool
	// newest is the highest number since the program went back, end the end of
	// that step, and attempt its attempt.
	newest, end, attempt int64
	// seen has a bit for newest and each number below it.
	seen uint64
	// counted is the number of steps.
	counted int64
}

// begin sets the number of steps before the first number.
func (n *numbers) begin(before int64) {
	if !n.begun {
		n.counted = before
	}
}

// add adds the end of a step. If its number is lower than the newest and it
// ended later, the program went back, to a checkpoint or to another loop.
func (n *numbers) add(number, attempt, end int64) {
	behind := n.newest - number
	switch {
	case !n.begun, attempt > n.attempt, behind > 0 && end > n.end:
		*n = numbers{begun: true, newest: number, end: end, attempt: attempt, seen: 1, counted: n.counted}
	case behind < 0:
		n.seen = n.seen<<min(-behind, rememberedNumbers) | 1
		n.newest, n.end = number, end
	case behind >= rememberedNumbers:
	// Too old to be remembered, so it counts.
	case n.seen&(1<<behind) != 0:
		return
	default:
		n.seen |= 1 << behind
	}
	n.counted++
}
