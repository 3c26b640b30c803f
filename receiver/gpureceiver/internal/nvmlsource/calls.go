package nvmlsource

import (
	"context"
	"sync"
	"time"
)

// outcome is what became of a job.
type outcome int

const (
	// completed means that the job has run to its end.
	completed outcome = iota
	// refused means that the job has not run and never will: an earlier job
	// with the same subject hangs, or the goroutine was busy all the time.
	refused
	// abandoned means that the job still runs and its result is ignored.
	abandoned
)

// calls makes all calls into NVML of this process on one goroutine, because
// NVML's own locking is not reliable. If a call does not return in time, its
// goroutine is abandoned and another one takes over, also for the jobs that wait
// already. The call's subject gets no further calls until it returns. There is
// at most one goroutine more than there are subjects.
type calls struct {
	// The current goroutine receives from jobs.
	jobs chan *job

	mu      sync.Mutex
	hung    map[string]struct{}
	current *thread
	// waiting is the number of senders to jobs.
	waiting int
	// rounds is the number of rounds that run, and idle how often the last of them
	// has ended.
	rounds, idle int
	// changed is closed and replaced when a hung call returns or the last round
	// ends.
	changed chan struct{}
}

// thread is a goroutine that makes calls.
type thread struct {
	quit chan struct{}
	done chan struct{}
}

// job is a series of calls about a subject. The fields after run are guarded by
// calls.mu, except for finished itself.
type job struct {
	subject string
	run     func()

	// thread is the goroutine that runs it, nil before it has begun.
	thread *thread
	// finished is closed once the outcome is decided.
	finished chan struct{}
	decided  bool
	outcome  outcome
}

func (j *job) decide(of outcome) {
	j.decided, j.outcome = true, of
	close(j.finished)
}

func newCalls() *calls {
	return &calls{jobs: make(chan *job), hung: make(map[string]struct{}), changed: make(chan struct{})}
}

// do runs a job on the goroutine, and waits for it: up to the timeout for its end,
// and up to twice the timeout for its start, because the job before it may take that
// long to be abandoned. It stops waiting when ctx ends.
func (c *calls) do(ctx context.Context, timeout time.Duration, subject string, run func()) outcome {
	if ctx.Err() != nil || !c.enter(subject) {
		return refused
	}
	j := &job{subject: subject, run: run, finished: make(chan struct{})}
	timer := time.NewTimer(2 * timeout)
	defer timer.Stop()
	sent := false
	select {
	case c.jobs <- j:
		sent = true
	case <-timer.C:
	case <-ctx.Done():
	}
	if !sent {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting--
		return refused
	}
	timer.Reset(timeout)
	select {
	case <-j.finished:
	case <-timer.C:
	case <-ctx.Done():
	}
	return c.collect(j)
}

// enter counts a sender, and makes sure that there is a goroutine. It reports
// false for a subject that hangs.
func (c *calls) enter(subject string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, hung := c.hung[subject]; hung {
		return false
	}
	c.waiting++
	if c.current == nil {
		c.current = c.startThread()
	}
	return true
}

// collect returns a job's outcome. A job that runs is abandoned with its goroutine.
func (c *calls) collect(j *job) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case j.decided:
	case j.thread == nil:
		j.decide(refused)
	default:
		j.decide(abandoned)
		c.hung[j.subject] = struct{}{}
		if c.current == j.thread {
			c.current = nil
			if c.waiting > 0 {
				c.current = c.startThread()
			}
		}
	}
	return j.outcome
}

// startThread is called with the lock held.
func (c *calls) startThread() *thread {
	t := &thread{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for {
			select {
			case j := <-c.jobs:
				if c.make(t, j); j.outcome == abandoned {
					return
				}
			case <-t.quit:
				return
			}
		}
	}()
	return t
}

// make runs a job, unless its subject hangs or nobody waits for it any more. The
// outcome does not change afterwards.
func (c *calls) make(t *thread, j *job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if j.decided {
		return
	}
	if _, hung := c.hung[j.subject]; hung {
		j.decide(refused)
		return
	}
	j.thread = t
	c.mu.Unlock()
	j.run()
	c.mu.Lock()
	if !j.decided {
		j.decide(completed)
		return
	}
	delete(c.hung, j.subject)
	c.change()
}

// hangs reports whether an abandoned call about a subject still runs. An empty
// subject stands for any.
func (c *calls) hangs(subject string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if subject == "" {
		return len(c.hung) > 0
	}
	_, hung := c.hung[subject]
	return hung
}

// beginRound and endRound stand around the calls that must not be delayed.
func (c *calls) beginRound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rounds++
}

func (c *calls) endRound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rounds--; c.rounds == 0 {
		c.idle++
		c.change()
	}
}

// change wakes those who wait. It is called with the lock held.
func (c *calls) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// until waits until a condition holds, which is checked with the lock held, or until
// ctx ends, and reports whether it holds.
func (c *calls) until(ctx context.Context, holds func() bool) bool {
	for {
		c.mu.Lock()
		held, changed := holds(), c.changed
		c.mu.Unlock()
		if held || ctx.Err() != nil {
			return held
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// waitForIdle waits until no round runs, or one has just ended, so that a slow
// call is made between two rounds even if there is no pause. It reports false if
// ctx ends before.
func (c *calls) waitForIdle(ctx context.Context) bool {
	before := -1
	return c.until(ctx, func() bool {
		if before < 0 {
			before = c.idle
		}
		return c.rounds == 0 || c.idle > before
	}) && ctx.Err() == nil
}

// settle waits until no call hangs, until the timeout or ctx, and reports
// whether none does.
func (c *calls) settle(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.until(ctx, func() bool { return len(c.hung) == 0 })
}

// stop ends the current goroutine and waits for it. No do may run.
func (c *calls) stop() {
	c.mu.Lock()
	t := c.current
	c.current = nil
	c.mu.Unlock()
	if t == nil {
		return
	}
	close(t.quit)
	<-t.done
}

// The calls are process-wide, because one process has one NVML.
var (
	processCallsMu   sync.Mutex
	processCalls     = newCalls()
	processCallUsers int
)

// acquireCalls returns the calls of this process. Every source that acquires
// them releases them once.
func acquireCalls() *calls {
	processCallsMu.Lock()
	defer processCallsMu.Unlock()
	processCallUsers++
	return processCalls
}

// releaseCalls ends the goroutine when the last source is gone.
func releaseCalls() {
	processCallsMu.Lock()
	defer processCallsMu.Unlock()
	processCallUsers--
	if processCallUsers == 0 {
		processCalls.stop()
	}
}
