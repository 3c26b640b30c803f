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
	// returned is closed when a hung call returns. It is nil while nothing
	// waits for that.
	returned chan struct{}
	// rounds is the number of rounds that run. idle is closed when the last of
	// them ends, and nil while nothing waits for that.
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

// job is a series of steps that the goroutine runs without a pause. The fields
// after finished are guarded by calls.mu.
type job struct {
	steps    []step
	finished chan struct{}

	state jobState
	// outcomes are the outcomes of the steps that have ended, in their order.
	outcomes []outcome
	// begun is when the step that runs began.
	begun time.Time
	// skipped is true if the present step does not run, because its subject
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
	// jobAbandoned means that a step runs and its result is ignored. The steps
	// after it do not run.
	jobAbandoned
	// jobEnded means that nothing more of it will run.
	jobEnded
)

func newCalls() *calls {
	return &calls{jobs: make(chan *job), hung: make(map[string]struct{})}
}

// do runs one step. See doAll.
func (c *calls) do(ctx context.Context, timeout time.Duration, subject string, run func()) outcome {
	return c.doAll(ctx, timeout, []step{{subject, run}})[0]
}

// doAll runs the steps on the goroutine, one after the other, and waits for
// them: up to the timeout for the end of each step, and up to twice the timeout
// for its start, because the call before it may take that long to be abandoned.
// It stops waiting when ctx ends. An abandoned step costs the steps after it
// that time only.
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

// wait returns the outcomes of the first steps, one or more: the job ends early
// if a step is abandoned, or if another job waits.
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

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
}

// collect returns the outcomes of a job's steps. While a step has time left it
// returns nil and that time. A step without time left, or that is interrupted, is
// abandoned with its goroutine.
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
		j.state = jobAbandoned
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

// make runs the steps of a job, and reports whether the goroutine was abandoned
// meanwhile.
func (c *calls) make(t *thread, j *job) (left bool) {
	// This job no longer waits.
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

// begin reports whether to run the next step: not if the job has ended, or if
// the step's subject hangs.
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
// the goroutine was abandoned meanwhile. A job ends early if another one waits,
// which then runs before the rest.
func (c *calls) end(j *job) (ended, left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch j.state {
	case jobEnded:
		return true, false
	case jobAbandoned:
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
	c.rounds--
	if c.rounds == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// waitForIdle waits until no round runs, or one has just ended, so that a slow
// call is made between two rounds even if there is no pause. It reports false if
// ctx ends before.
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

// stop ends the current goroutine and waits for it. No do or doAll may run.
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
