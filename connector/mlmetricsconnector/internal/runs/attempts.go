package runs

import (
	"slices"
	"strings"
	"time"
)

// maxAttemptGap is the largest increase of the attempt number that is accepted.
const maxAttemptGap = 1000

// rememberedTraces is the number of earlier attempts whose traces are
// remembered, so that their late spans do not count as a new attempt.
const rememberedTraces = 8

// Attempt is what is known of the attempts of one rank.
type Attempt struct {
	Attempts attempts
	// Attempted is the number of attempts that were seen.
	Attempted int64
	restarts  restarts
	Rework    rework
	// starts reports whether the attempt has taken no step, after one that has; began
	// is when it began.
	starts bool
	began  time.Time
	// Processes are the newest of the rank, the one that began last at first, and Paused
	// reports whether there was a gap since the newest number of a step.
	Processes [4]instance
	Paused    bool
}

// restartGap is the least time without work before an attempt that nothing counts, and
// restartSteps the same in recent steps: a program loads before it goes on.
const (
	restartGap   = 10 * time.Second
	restartSteps = 3
)

// instance identifies the process of a rank.
type instance struct{ PID, Born int64 }

// beginsAgain reports whether a span belongs to a new attempt that no launcher counts:
// after a gap, another process works that did not before, or the step's number has fallen,
// but not to the beginning, as in the next epoch.
func (c *clock) beginsAgain(s *Span) bool {
	is := instance{s.PID, s.Born}
	was := c.Processes
	if is != (instance{}) && !slices.Contains(was[:], is) {
		copy(c.Processes[1:], was[:])
		c.Processes[0] = is
	}
	if s.Numbered || s.OneTrace || c.Worked == 0 {
		return false
	}
	gap := float64(s.Time.Start-c.Worked)/1e9 >= max(restartGap.Seconds(), restartSteps*c.pace.Times().Recent)
	c.Paused = c.Paused || gap
	fallen := c.Paused && s.Step < c.Rework.Newest && s.Step > c.Rework.Newest/10
	if s.Step > 0 {
		c.Paused = false
	}
	return gap && was[0] != (instance{}) && c.Processes != was || fallen
}

// attempts counts the attempts of one rank. An attempt begins with a higher
// number from the launcher; without that number, with a new trace if the client
// has one trace for the life of a process; and with work after the end of
// training.
type attempts struct {
	Number   int64
	Numbered bool

	Trace   [16]byte
	earlier [rememberedTraces][16]byte
	next    int
}

// see returns how many attempts begin with a span, and whether the span belongs
// to an earlier attempt. newest is the end of the latest work and ended the end
// of training, or 0.
func (a *attempts) see(s *Span, newest, ended int64) (begun int64, old bool) {
	switch {
	case s.Numbered:
		return a.count(s.Restarts)
	case a.Numbered:
		// A span without a number belongs to the current attempt.
	case s.OneTrace && s.Trace != [16]byte{}:
		return a.follow(s.Trace, s.Time.Start, newest)
	case ended > 0 && s.Time.Start >= ended:
		return 1, false
	}
	return 0, false
}

// count compares the launcher's number with the previous one.
func (a *attempts) count(number int64) (begun int64, old bool) {
	if a.Numbered {
		old = number < a.Number
		number = max(number, a.Number)
		begun = min(number-a.Number, maxAttemptGap)
	}
	a.Number, a.Numbered = number, true
	return begun, old
}

// follow compares the trace of a process, which began at start, with the previous one. A
// trace that overlaps it belongs to another process with the same labels, and is no new
// attempt.
func (a *attempts) follow(trace [16]byte, start, newest int64) (begun int64, old bool) {
	switch {
	case a.Trace == [16]byte{}:
		a.Trace = trace
		return 0, false
	case trace == a.Trace:
		return 0, false
	case slices.Contains(a.earlier[:], trace):
		return 0, start < newest
	case start >= newest:
		begun, trace, a.Trace = 1, a.Trace, trace
	}
	a.earlier[a.next%rememberedTraces] = trace
	a.next++
	return begun, false
}

// LoopOf is the number of new attempts that make a restart loop, so that the times of as
// many restarts are remembered.
const LoopOf = 3

// restarts has the times of the newest restarts.
type restarts struct {
	times [LoopOf]time.Time
	next  int
}

// add records n restarts.
func (r *restarts) add(n int64, now time.Time) {
	for range min(n, LoopOf) {
		r.times[r.next%LoopOf] = now
		r.next++
	}
}

// first returns when the first of the remembered restarts was, zero if there were fewer.
func (r *restarts) first() time.Time { return r.times[r.next%LoopOf] }

// rework recognizes steps that an earlier attempt already did, if the client
// numbers the steps of its run.
type rework struct {
	// Done is the highest number of earlier attempts, Newest that of this one. Again
	// reports whether its steps were done before.
	Done, Newest int64
	Again        bool
}

// restart begins a new attempt.
func (r *rework) restart() {
	r.Done = max(r.Done, r.Newest)
	r.Newest = 0
	r.Again = r.Done > 0
}

// see reports whether a span belongs to a step that was done before. A span
// without a number (0) belongs to the same step as the previous one.
func (r *rework) see(step int64) bool {
	if step > 0 {
		r.Newest = max(r.Newest, step)
		r.Again = step <= r.Done
	}
	return r.Again
}

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
