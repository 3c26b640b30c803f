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
// return in time is left behind and another takes its place; its subject gets
// no further calls until it returns. There are at most as many goroutines as
// subjects, and one more.
type calls struct {
	mu      sync.Mutex
	hung    map[string]struct{}
	current *thread
	// returned is closed and made anew each time a hung call returns.
	returned chan struct{}
}

// thread is the goroutine that makes calls.
type thread struct {
	jobs chan job
	quit chan struct{}
	done chan struct{}
}

// job is one round of calls about a subject.
type job struct {
	run      func()
	subject  string
	finished chan struct{}
	// abandoned is guarded by calls.mu.
	abandoned *bool
}

// do runs run on the goroutine and waits for it, until the timeout or ctx.
func (c *calls) do(ctx context.Context, timeout time.Duration, subject string, run func()) outcome {
	c.mu.Lock()
	if _, hung := c.hung[subject]; hung {
		c.mu.Unlock()
		return refused
	}
	if c.current == nil {
		c.current = c.startThread()
	}
	t := c.current
	c.mu.Unlock()

	j := job{run: run, subject: subject, finished: make(chan struct{}), abandoned: new(bool)}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case t.jobs <- j:
	case <-timer.C:
		return refused
	case <-ctx.Done():
		return refused
	}
	select {
	case <-j.finished:
		return completed
	case <-timer.C:
	case <-ctx.Done():
	}
	return c.abandon(t, j)
}

// abandon leaves the goroutine behind with its job, unless the job has just
// finished.
func (c *calls) abandon(t *thread, j job) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-j.finished:
		return completed
	default:
	}
	*j.abandoned = true
	if c.hung == nil {
		c.hung = make(map[string]struct{})
	}
	c.hung[j.subject] = struct{}{}
	if c.current == t {
		c.current = nil
	}
	return abandoned
}

func (c *calls) startThread() *thread {
	t := &thread{jobs: make(chan job), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for {
			select {
			case j := <-t.jobs:
				j.run()
				if c.finish(j) {
					return
				}
			case <-t.quit:
				return
			}
		}
	}()
	return t
}

// finish reports whether the goroutine was left behind meanwhile.
func (c *calls) finish(j job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(j.finished)
	if *j.abandoned {
		delete(c.hung, j.subject)
		if c.returned != nil {
			close(c.returned)
			c.returned = nil
		}
	}
	return *j.abandoned
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
	processCalls     = &calls{}
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
