package runs

import (
	"strings"
	"time"
)

// leastWork is the number of spans of work that a root contains which closes the
// program: the root of a single step is followed by others.
const leastWork = 2

// failedSpan is a span that failed, by the client's clock.
type failedSpan struct {
	Failure
	trace      [16]byte
	start, end int64
}

// ending is what the spans of one rank say about its end. The zero value is ready.
type ending struct {
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
	failure failedSpan
}

// see adds a span. worked is the end of the newest work before it.
func (e *ending) see(s *Span, worked int64) {
	work := s.works()
	closes := s.Root && !work && !s.EndsRun && e.works >= leastWork && s.Trace == e.trace && s.Time.Start <= e.from && s.Time.End >= worked
	switch {
	case work:
		if s.Trace != e.trace {
			e.trace, e.from, e.works = s.Trace, s.Time.Start, 0
		}
		e.works, e.from = e.works+1, min(e.from, s.Time.Start)
		e.reopened = e.reopened || e.closed > 0 && s.Time.Start >= e.closed
	case closes:
		e.closed = s.Time.End
	case !s.EndsRun:
		return
	}
	if s.Failure == "" || s.Time.End < e.failure.end {
		return
	}
	if around := e.failure.Class != "" && s.Trace == e.failure.trace && s.Time.Start <= e.failure.start; around && e.failure.end >= worked {
		// The error left the span inside, which knows it best.
		e.failure.start, e.failure.end = s.Time.Start, s.Time.End
		return
	}
	of := Failure{strings.Clone(s.Failure), strings.Clone(s.Message), strings.Clone(s.Operation), time.Unix(0, s.Time.End)}
	e.failure = failedSpan{of, s.Trace, s.Time.Start, s.Time.End}
}

// isClosed reports whether a root around all work has ended after worked, the end of the
// newest work.
func (e *ending) isClosed(worked int64) bool {
	return e.closed > 0 && e.closed >= worked && (!e.reopened || e.failure.end >= e.closed)
}

// failed returns the error with which the program ended, without a class if the last span
// did not fail. worked is the end of the newest work, and trained that of the training, 0 if
// unknown.
func (e *ending) failed(worked, trained int64) Failure {
	if e.failure.end < max(worked, trained) || e.isClosed(worked) && e.failure.end < e.closed {
		return Failure{}
	}
	return e.failure.Failure
}
