package nvmlsource

import (
	"context"
	"slices"
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

// step is one round of calls about a subject.
type step struct {
	subject string
	run     func()
}

// job is a series of steps that the goroutine makes without going back to the
// one who waits. What follows finished is guarded by calls.mu.
type job struct {
	steps    []step
	finished chan struct{}

	state jobState
	// outcomes are those of the steps that have ended, in their order.
	outcomes []outcome
	// begun is when the step that runs began.
	begun time.Time
	// skipped is true where the present step is not made, because its subject
	// hangs.
	skipped bool
	// thread is the goroutine that runs it.
	thread *thread
}

// jobState is how far a job has come.
type jobState int

const (
	jobWaits jobState = iota
	jobRuns
	// jobLeft means that a step runs and nobody waits for it. The steps after
	// it are not made.
	jobLeft
	// jobEnded means that nothing more of it will run.
	jobEnded
)

func newCalls() *calls {
	return &calls{jobs: make(chan *job), hung: make(map[string]struct{})}
}

// do makes one step. See doAll.
func (c *calls) do(ctx context.Context, timeout time.Duration, subject string, run func()) outcome {
	return c.doAll(ctx, timeout, []step{{subject, run}})[0]
}

// doAll makes the steps on the goroutine, one after the other, and waits for
// them. It waits no longer than the timeout for the end of each, and twice
// that for its turn, because the call before it may take that long to be left
// behind. It waits for neither beyond the end of ctx. A step that is left
// behind costs the steps after it nothing but that time.
func (c *calls) doAll(ctx context.Context, timeout time.Duration, steps []step) []outcome {
	outcomes := make([]outcome, 0, len(steps))
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for len(outcomes) < len(steps) {
		rest := steps[len(outcomes):]
		if ctx.Err() != nil || !c.enter(rest[0].subject) {
			outcomes = append(outcomes, refused)
			continue
		}
		timer.Reset(2 * timeout)
		j := &job{steps: rest, finished: make(chan struct{}), outcomes: make([]outcome, 0, len(rest))}
		if !c.send(ctx, timer, j) {
			outcomes = append(outcomes, refused)
			continue
		}
		outcomes = append(outcomes, c.wait(ctx, timer, timeout, j)...)
	}
	return outcomes
}

// send hands a job to the goroutine.
func (c *calls) send(ctx context.Context, timer *time.Timer, j *job) (sent bool) {
	select {
	case c.jobs <- j:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	c.leave()
	return false
}

// wait returns the outcomes of as many steps as have ended, one or more: the
// job ends early where a step is left behind, or where others wait.
func (c *calls) wait(ctx context.Context, timer *time.Timer, timeout time.Duration, j *job) []outcome {
	timer.Reset(timeout)
	for {
		interrupted := false
		select {
		case <-j.finished:
		case <-timer.C:
		case <-ctx.Done():
			interrupted = true
		}
		outcomes, left := c.collect(j, timeout, interrupted)
		if outcomes != nil {
			return outcomes
		}
		timer.Reset(left)
	}
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

// collect returns what became of a job's steps: nothing while one runs that
// has time left, and how much that is. One that has none, or that is
// interrupted, is left behind with its goroutine.
func (c *calls) collect(j *job, timeout time.Duration, interrupted bool) (outcomes []outcome, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch j.state {
	case jobWaits:
		j.state = jobEnded
		return []outcome{refused}, 0
	case jobRuns:
		if left = timeout - time.Since(j.begun); left > 0 && !interrupted {
			return nil, left
		}
		j.state = jobLeft
		c.hung[j.subject()] = struct{}{}
		if c.current == j.thread {
			c.current = nil
			if c.waiting > 0 {
				c.current = c.startThread()
			}
		}
		return append(slices.Clone(j.outcomes), abandoned), 0
	}
	return j.outcomes, 0
}

// subject is that of the step that runs.
func (j *job) subject() string {
	return j.steps[len(j.outcomes)].subject
}

// startThread is called with the lock held.
func (c *calls) startThread() *thread {
	t := &thread{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for {
			select {
			case j := <-c.jobs:
				if c.make(t, j) {
					return
				}
			case <-t.quit:
				return
			}
		}
	}()
	return t
}

// make makes the steps of a job, and reports whether the goroutine was left
// behind meanwhile.
func (c *calls) make(t *thread, j *job) (left bool) {
	// Only others wait from now on.
	c.leave()
	for i := range j.steps {
		if c.begin(t, j) {
			j.steps[i].run()
		}
		ended, left := c.end(j)
		if ended {
			return left
		}
	}
	return false
}

// begin reports whether the next step is to be made. It is not where nobody
// waits any more, or where its subject hangs.
func (c *calls) begin(t *thread, j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.state == jobEnded {
		return false
	}
	j.state, j.thread, j.begun = jobRuns, t, time.Now()
	_, hung := c.hung[j.subject()]
	j.skipped = hung
	return !hung
}

// end ends a step, and reports whether the job has ended with it, and whether
// the goroutine was left behind meanwhile. A job ends early where others wait,
// so that they get their turn.
func (c *calls) end(j *job) (ended, left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch j.state {
	case jobEnded:
		return true, false
	case jobLeft:
		delete(c.hung, j.subject())
		if c.returned != nil {
			close(c.returned)
			c.returned = nil
		}
		j.state = jobEnded
		close(j.finished)
		return true, true
	}
	if j.skipped {
		j.outcomes = append(j.outcomes, refused)
	} else {
		j.outcomes = append(j.outcomes, completed)
	}
	if len(j.outcomes) < len(j.steps) && c.waiting == 0 {
		return false, false
	}
	j.state = jobEnded
	close(j.finished)
	return true, false
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
