package steps

import (
	"cmp"
	"slices"
)

// maxEvents bounds the spans that a Sequence remembers. It is far more than
// what arrives out of order.
const maxEvents = 512

// Kind is what a span is to a step.
type Kind uint8

const (
	// Forward is a forward pass, or what contains one: after it, an optimizer
	// ends another step.
	Forward Kind = iota
	// Optimizer is a span of an optimizer, whose end may be that of a step.
	Optimizer
)

// Sequence counts the steps of one program. An optimizer that ends ends a step,
// but for one within another (AdamW's step calls Adam's) and for several with
// no forward pass between their ends, which end one step together. A program
// that shows no forward pass ends a step with each optimizer.
//
// The number is that of the spans so far, whatever their order: a forward that
// comes late may divide one step into two. A number that turns out too high,
// because what joins two steps came late, is made up for by the steps that
// follow. The zero Sequence is ready to use. It is not safe for concurrent use.
type Sequence struct {
	// events are the newest spans by their ends, a forward before an optimizer
	// that ends at the same time.
	events []event
	// recent are the steps that end with events, and settled those that end
	// with spans that were forgotten.
	recent, settled int64
	// horizon is the end of the newest span that was forgotten, and 0 before
	// there is one. before is what it was.
	horizon int64
	before  Kind
	// forwards is true once there was a forward pass.
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

// Add adds a span by its times in nanoseconds since 1970, and returns how many
// more steps there are with it. A start that is not known is 0. One that ended
// before everything that is remembered is too late to be compared: an optimizer
// is a step then.
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

// AddNumbered adds an optimizer whose program numbers its steps, from 1 on within
// an attempt of a run, and returns how many more steps there are with it. There
// are at least as many as there are numbers, whatever the spans' times are: those
// of a clock that was set back lie among those of earlier steps.
func (s *Sequence) AddNumbered(start, end, number, attempt int64) (more int64) {
	s.numbers.begin(s.settled + s.recent)
	s.numbers.add(number, attempt, end)
	return s.Add(Optimizer, start, end)
}

// more returns how many steps there are that were not returned yet.
func (s *Sequence) more() int64 {
	more := max(s.settled+s.recent-s.counted, s.numbers.counted-s.counted, 0)
	s.counted += more
	return more
}

// place is where an event belongs.
func (s *Sequence) place(e event) int {
	at := len(s.events)
	for at > 0 && cmp.Or(cmp.Compare(s.events[at-1].end, e.end), cmp.Compare(s.events[at-1].kind, e.kind)) > 0 {
		at--
	}
	return at
}

// addForward leaves out a forward that lies in another one, as those of modules
// that call each other do, where nothing else ended meanwhile.
func (s *Sequence) addForward(e event) {
	at := s.place(e)
	if at < len(s.events) && s.events[at].kind == Forward && s.events[at].start <= e.start {
		return
	}
	from := at
	for from > 0 && s.events[from-1].kind == Forward && s.events[from-1].start >= e.start {
		from--
	}
	s.events = slices.Replace(s.events, from, at, e)
	if !s.forwards || from+1 < len(s.events) {
		s.forwards = true
		s.recent = s.steps(s.events)
	}
}

// addOptimizer leaves out an optimizer that lies in another one, whatever ended
// meanwhile.
func (s *Sequence) addOptimizer(e event) {
	at := s.place(e)
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

// ends says whether a step begins to end with an event of the kind at a place.
func (s *Sequence) ends(at int, kind Kind) bool {
	after := s.before
	if at > 0 {
		after = s.events[at-1].kind
	}
	return kind == Optimizer && (after == Forward || !s.forwards)
}

// steps is the number of steps that end with the oldest events, as many as
// there are in the argument. A step is counted with the first of its
// optimizers.
func (s *Sequence) steps(oldest []event) (n int64) {
	for i := range oldest {
		if s.ends(i, oldest[i].kind) {
			n++
		}
	}
	return n
}

// forget drops the n oldest events and settles their steps.
func (s *Sequence) forget(n int) {
	steps := s.steps(s.events[:n])
	s.settled += steps
	s.recent -= steps
	s.horizon, s.before = s.events[n-1].end, s.events[n-1].kind
	s.events = slices.Delete(s.events, 0, n)
}
