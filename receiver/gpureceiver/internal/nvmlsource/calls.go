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
	// refused means that the job has not run and never will: an earlier one
	// about the same subject hangs, or the goroutine was busy all the time.
	refused
	// abandoned means that the job is still running and nobody waits for it.
	abandoned
)

// calls makes all calls into NVML of this process on one goroutine, because
// NVML's own locking is not to be trusted. A goroutine whose call does not
// return in time is left behind and another takes its place, also for those
// who wait already; its subject gets no further calls until it returns. There
// are at most as many goroutines as subjects, and one more.
type calls struct {
	// jobs is received from by the current goroutine, whichever that is.
	jobs chan *job

	mu      sync.Mutex
	hung    map[string]struct{}
	current *thread
	// waiting counts those who send to jobs.
	waiting int
	// returned is closed and made anew each time a hung call returns.
	returned chan struct{}
	// rounds counts the rounds under way. idle is closed when the last of
	// them ends, and nil while nobody waits for that.
	rounds int
	idle   chan struct{}
}

// thread is a goroutine that makes calls.
type thread struct {
	quit chan struct{}
	done chan struct{}
}

// job is one round of calls about a subject. What follows finished is guarded
// by calls.mu.
type job struct {
	run      func()
	subject  string
	finished chan struct{}

	state   jobState
	outcome outcome
	// thread is the goroutine that runs it.
	thread *thread
}

// jobState is how far a job has come.
type jobState int

const (
	jobWaits jobState = iota
	jobRuns
	// jobLeft means that it runs and nobody waits for it.
	jobLeft
	// jobEnded means that it has run, or never will.
	jobEnded
)

func newCalls() *calls {
	return &calls{jobs: make(chan *job), hung: make(map[string]struct{})}
}

// do runs run on the goroutine and waits for it. It waits no longer than the
// timeout for the end, and twice that for its turn, because the call before it
// may take that long to be left behind. It waits for neither beyond the end of
// ctx.
func (c *calls) do(ctx context.Context, timeout time.Duration, subject string, run func()) outcome {
	if ctx.Err() != nil || !c.enter(subject) {
		return refused
	}
	j := &job{run: run, subject: subject, finished: make(chan struct{})}
	timer := time.NewTimer(2 * timeout)
	defer timer.Stop()
	sent := false
	select {
	case c.jobs <- j:
		sent = true
	case <-timer.C:
	case <-ctx.Done():
	}
	c.leave()
	if !sent {
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

// enter counts one who waits, and makes sure that there is a goroutine to
// wait for. It reports false for a subject that hangs.
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

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
}

// collect returns what became of a job. One that still runs is left behind
// with its goroutine.
func (c *calls) collect(j *job) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch j.state {
	case jobWaits:
		j.state = jobEnded
		return refused
	case jobRuns:
		j.state = jobLeft
		c.hung[j.subject] = struct{}{}
		if c.current == j.thread {
			c.current = nil
			if c.waiting > 0 {
				c.current = c.startThread()
			}
		}
		return abandoned
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
				if !c.begin(t, j) {
					continue
				}
				j.run()
				if c.end(j) {
					return
				}
			case <-t.quit:
				return
			}
		}
	}()
	return t
}

// begin reports whether a job is to be run. It is not where its subject began
// to hang while the job waited.
func (c *calls) begin(t *thread, j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.state == jobEnded {
		return false
	}
	if _, hung := c.hung[j.subject]; hung {
		j.state, j.outcome = jobEnded, refused
		close(j.finished)
		return false
	}
	j.state, j.thread = jobRuns, t
	return true
}

// end reports whether the goroutine was left behind meanwhile.
func (c *calls) end(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := j.state == jobLeft
	j.state, j.outcome = jobEnded, completed
	close(j.finished)
	if left {
		delete(c.hung, j.subject)
		if c.returned != nil {
			close(c.returned)
			c.returned = nil
		}
	}
	return left
}

// hangs reports whether a call about a subject, or about any where subject is
// empty, has not returned in time and still runs.
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
	c.rounds--
	if c.rounds == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// waitForIdle waits until no round is under way, or one has just ended: where
// each begins as soon as the one before ends, a slow call still gets its turn
// between two of them. It reports false where ctx ended before.
func (c *calls) waitForIdle(ctx context.Context) bool {
	c.mu.Lock()
	if c.rounds == 0 {
		c.mu.Unlock()
		return ctx.Err() == nil
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// settle waits until no call hangs, until the timeout or ctx, and reports
// whether none does.
func (c *calls) settle(ctx context.Context, timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		c.mu.Lock()
		if len(c.hung) == 0 {
			c.mu.Unlock()
			return true
		}
		if c.returned == nil {
			c.returned = make(chan struct{})
		}
		returned := c.returned
		c.mu.Unlock()
		select {
		case <-returned:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// stop ends the goroutine that is not left behind, and waits for it. No do
// may be under way.
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

// process-wide calls, because one process has one NVML.
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
