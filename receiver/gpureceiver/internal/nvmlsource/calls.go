package nvmlsource

import (
	"context"
	"maps"
	"sync"
	"time"
)

// outcome is what became of a job.
type outcome int

const (
	// completed means that the job has run to its end.
	completed outcome = iota
	// refused means that the job has not run and never will: an earlier job
	// with the same subject hangs, or others ran all the time.
	refused
	// abandoned means that the job still runs and its result is ignored.
	abandoned
)

// calls makes all calls into NVML of this process one after the other, because
// NVML's own locking is not reliable. A job whose calls do not return in time is
// abandoned with its goroutine, and the next one has its turn. The job's subject gets no
// further calls until it returns. There are at most as many abandoned goroutines as
// there are subjects.
type calls struct {
	// turn has a value while no job has its turn.
	turn chan struct{}

	mu sync.Mutex
	// hung has the subjects of abandoned jobs, with channels that are closed when they
	// return.
	hung map[string]<-chan struct{}
}

// processCalls are those of this process, because one process has one NVML.
var processCalls = newCalls()

func newCalls() *calls {
	c := &calls{turn: make(chan struct{}, 1), hung: make(map[string]<-chan struct{})}
	c.turn <- struct{}{}
	return c
}

// do runs a job, a series of calls about a subject, and waits for it: up to the timeout
// for its end, and up to twice the timeout for its turn, because the job before it may
// take that long to be abandoned. It stops waiting when ctx ends.
func (c *calls) do(ctx context.Context, timeout time.Duration, subject string, run func()) outcome {
	if ctx.Err() != nil || c.hangs(subject) {
		return refused
	}
	timer := time.NewTimer(2 * timeout)
	defer timer.Stop()
	select {
	case <-c.turn:
	case <-timer.C:
		return refused
	case <-ctx.Done():
		return refused
	}
	defer func() { c.turn <- struct{}{} }()
	if c.hangs(subject) {
		return refused
	}
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		close(begun)
		run()
	}()
	<-begun // a busy host runs goroutines late, which is not the driver's time
	timer.Reset(timeout)
	select {
	case <-ended:
		return completed
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.hung[subject] = ended
	c.mu.Unlock()
	if c.hangs(subject) {
		return abandoned
	}
	return completed
}

// hangs reports whether an abandoned call about a subject still runs. An empty
// subject stands for any.
func (c *calls) hangs(subject string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of, ended := range c.hung {
		select {
		case <-ended:
			delete(c.hung, of)
		default:
		}
	}
	_, hung := c.hung[subject]
	return hung || subject == "" && len(c.hung) > 0
}

// settle waits until no call hangs, until the timeout or ctx, and reports
// whether none does.
func (c *calls) settle(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c.mu.Lock()
	hung := maps.Clone(c.hung)
	c.mu.Unlock()
	for _, ended := range hung {
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	return !c.hangs("")
}
