package runs

import (
	"slices"
	"time"
)

// maxAttemptGap is the largest increase of the attempt number that is accepted.
const maxAttemptGap = 1000

// rememberedTraces is the number of earlier attempts whose traces are
// remembered, so that their late spans do not count as a new attempt.
const rememberedTraces = 8

// attempt is what is known of the attempts of one rank.
type attempt struct {
	attempts attempts
	// attempted is the number of attempts that were seen.
	attempted int64
	restarts  restarts
	rework    rework
	// starts reports whether the attempt has taken no step, after one that has; began
	// is when it began.
	starts bool
	began  time.Time
	// processes are the newest of the rank, the one that began last at first, and paused
	// reports whether there was a gap since the newest number of a step.
	processes [4]instance
	paused    bool
}

// restartGap is the least time without work before an attempt that nothing counts, and
// restartSteps the same in recent steps: a program loads before it goes on.
const (
	restartGap   = 10 * time.Second
	restartSteps = 3
)

// instance identifies the process of a rank.
type instance struct{ pid, born int64 }

// beginsAgain reports whether a span belongs to a new attempt that no launcher counts:
// after a gap, another process works that did not before, or the step's number has fallen,
// but not to the beginning, as in the next epoch.
func (c *clock) beginsAgain(s *Span) bool {
	is := instance{s.PID, s.Born}
	was := c.processes
	if is != (instance{}) && !slices.Contains(was[:], is) {
		copy(c.processes[1:], was[:])
		c.processes[0] = is
	}
	if s.Numbered || s.OneTrace || c.worked == 0 {
		return false
	}
	gap := float64(s.Time.Start-c.worked)/1e9 >= max(restartGap.Seconds(), restartSteps*c.pace.Times().Recent)
	c.paused = c.paused || gap
	fallen := c.paused && s.Step < c.rework.newest && s.Step > c.rework.newest/10
	if s.Step > 0 {
		c.paused = false
	}
	return gap && was[0] != (instance{}) && c.processes != was || fallen
}

// attempts counts the attempts of one rank. An attempt begins with a higher
// number from the launcher; without that number, with a new trace if the client
// has one trace for the life of a process; and with work after the end of
// training.
type attempts struct {
	number   int64
	numbered bool

	trace   [16]byte
	earlier [rememberedTraces][16]byte
	next    int
}

// sign is what a span reveals about its attempt.
type sign struct {
	// number is the launcher's count of restarts; numbered reports whether
	// there is one.
	number   int64
	numbered bool
	// trace is the trace of the whole process, zero if a process has several.
	trace [16]byte
	// start is the start of the span.
	start int64
}

// see returns how many attempts begin with a span, and whether the span belongs
// to an earlier attempt. newest is the end of the latest work and ended the end
// of training, or 0.
func (a *attempts) see(s sign, newest, ended int64) (begun int64, old bool) {
	if s.numbered {
		return a.count(s.number)
	}
	if a.numbered {
		// A span without a number belongs to the current attempt.
		return 0, false
	}
	if s.trace != [16]byte{} {
		return a.follow(s, newest)
	}
	if ended > 0 && s.start >= ended {
		return 1, false
	}
	return 0, false
}

// count compares the launcher's number with the previous one.
func (a *attempts) count(number int64) (begun int64, old bool) {
	if !a.numbered {
		a.number, a.numbered = number, true
		return 0, false
	}
	if number <= a.number {
		return 0, number < a.number
	}
	begun = min(number-a.number, maxAttemptGap)
	a.number = number
	return begun, false
}

// follow compares the trace with the previous one. A trace that overlaps it
// belongs to another process with the same labels, and is no new attempt.
func (a *attempts) follow(s sign, newest int64) (begun int64, old bool) {
	switch {
	case s.trace == a.trace:
		return 0, false
	case a.trace == [16]byte{}:
		a.trace = s.trace
		return 0, false
	}
	for _, earlier := range a.earlier {
		if earlier == s.trace {
			return 0, s.start < newest
		}
	}
	if s.start < newest {
		a.remember(s.trace)
		return 0, false
	}
	a.remember(a.trace)
	a.trace = s.trace
	return 1, false
}

func (a *attempts) remember(trace [16]byte) {
	a.earlier[a.next%rememberedTraces] = trace
	a.next++
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
	// done is the highest number of earlier attempts, newest that of this one.
	done, newest int64
	again        bool
}

// restart begins a new attempt.
func (r *rework) restart() {
	r.done = max(r.done, r.newest)
	r.newest = 0
	r.again = r.done > 0
}

// see reports whether a span belongs to a step that was done before. A span
// without a number (0) belongs to the same step as the previous one.
func (r *rework) see(step int64) bool {
	if step > 0 {
		r.newest = max(r.newest, step)
		r.again = step <= r.done
	}
	return r.again
}
