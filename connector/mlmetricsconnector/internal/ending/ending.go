// Package ending concludes from the spans of one rank that its program has come to
// its end, and whether it failed.
package ending

import "strings"

// Span is what a span says about the end of the rank's program. Times are in
// nanoseconds, by the client's clock.
type Span struct {
	Trace      [16]byte
	Start, End int64
	// Root reports whether the span has no parent, Work whether it is work of a step,
	// and Train whether it is that of the whole training.
	Root, Work, Train bool
	// Failure is the class of its error, "" if it did not fail, and Operation what it
	// did, "" if unknown.
	Failure, Operation string
}

// leastWork is the number of spans of work that a root contains which closes the
// program: the root of a single step is followed by others.
const leastWork = 2

// Ending is what the spans of one rank say about its end. The zero value is ready.
type Ending struct {
	// trace is that of the newest work, from the earliest start of work in it, and
	// works their number.
	trace [16]byte
	from  int64
	works int
	// closed is the end of the newest root around all work of its trace, 0 if none,
	// and reopened reports whether work came after one: then roots say nothing, as
	// those of epochs.
	closed   int64
	reopened bool
	// failure is the newest failed span of work, of the training or around all work.
	failure Span
}

// See adds a span. worked is the end of the newest work before it.
func (e *Ending) See(s *Span, worked int64) {
	closes := s.Root && !s.Work && !s.Train && e.works >= leastWork && s.Trace == e.trace && s.Start <= e.from && s.End >= worked
	switch {
	case s.Work:
		if s.Trace != e.trace {
			e.trace, e.from, e.works = s.Trace, s.Start, 0
		}
		e.works, e.from = e.works+1, min(e.from, s.Start)
		e.reopened = e.reopened || e.closed > 0 && s.Start >= e.closed
	case closes:
		e.closed = s.End
	case !s.Train:
		return
	}
	if s.Failure == "" || s.End < e.failure.End {
		return
	}
	if around := e.failure.Failure != "" && s.Trace == e.failure.Trace && s.Start <= e.failure.Start; around && e.failure.End >= worked {
		// The error left the span inside, which knows it best.
		e.failure.Start, e.failure.End = s.Start, s.End
		return
	}
	e.failure = *s
	e.failure.Failure, e.failure.Operation = strings.Clone(s.Failure), strings.Clone(s.Operation)
}

// Closed reports whether a root around all work has ended after worked, the end of the
// newest work.
func (e *Ending) Closed(worked int64) bool {
	return e.closed > 0 && e.closed >= worked && (!e.reopened || e.failure.End >= e.closed)
}

// Failed returns the class of the error with which the program ended, and the
// operation that failed. worked is the end of the newest work, and trained that of the
// training, 0 if unknown. ok is false if the last span did not fail.
func (e *Ending) Failed(worked, trained int64) (class, operation string, ok bool) {
	last := max(worked, trained)
	if e.Closed(worked) {
		last = max(last, e.closed)
	}
	if e.failure.Failure == "" || e.failure.End < last {
		return "", "", false
	}
	return e.failure.Failure, e.failure.Operation, true
}
