package mlmetricsconnector

// maxAttemptGap bounds how many attempts at once are believed.
const maxAttemptGap = 1000

// rememberedTraces is how many traces of earlier attempts are known, so that
// what of them comes late is not taken for another attempt.
const rememberedTraces = 8

// attempts tells the attempts of one process of a run apart. An attempt begins
// with a greater number from the launcher, where that counts; else with another
// trace, for a client with one trace for the life of a process; and with work
// that begins after the client has said that the training is over.
type attempts struct {
	number   int64
	numbered bool

	trace   [16]byte
	earlier [rememberedTraces][16]byte
	next    int
}

// sign is what a span shows of the attempt that it is of.
type sign struct {
	// number is the launcher's count of restarts, numbered whether there is one.
	number   int64
	numbered bool
	// trace is that of the whole process, and zero where a process has several.
	trace [16]byte
	// start is when the span began.
	start int64
}

// see returns how many attempts begin with a span, and whether the span is of
// an earlier attempt. newest is the end of the newest work that was seen, and
// ended that of the training, or 0.
func (a *attempts) see(s sign, newest, ended int64) (begun int64, old bool) {
	if s.numbered {
		return a.count(s.number)
	}
	if a.numbered {
		// Not every span says it: this is one of the attempt that goes on.
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

// count compares the launcher's number with the one before.
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

// follow compares the trace with the one before. A trace that overlaps it is
// that of another process with the same labels, and no attempt.
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

// rework tells which steps an earlier attempt had done already, where a client
// numbers the steps of its run.
type rework struct {
	// done is the highest number of earlier attempts, newest that of this one.
	done, newest int64
	again        bool
}

// restart begins another attempt.
func (r *rework) restart() {
	r.done = max(r.done, r.newest)
	r.newest = 0
	r.again = r.done > 0
}

// see reports whether a span is of a step that was done before. A span without
// a number, which is 0, is of the same step as the one before it.
func (r *rework) see(step int64) bool {
	if step > 0 {
		r.newest = max(r.newest, step)
		r.again = step <= r.done
	}
	return r.again
}
