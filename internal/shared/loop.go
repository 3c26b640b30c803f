package shared

import (
	"context"
	"sync"
	"time"
)

// Loop calls a function in the background, time and again. The zero value is ready to use.
type Loop struct {
	running sync.WaitGroup
	// end ends the calls and the one that runs, last only further ones.
	end, last context.CancelFunc
}

// Start begins the calls: the first one after a delay, and each other one an interval
// after the one before has returned. The context of a call ends with Stop or Finish.
func (l *Loop) Start(delay, interval time.Duration, call func(context.Context)) {
	ctx, end := context.WithCancel(context.Background())
	further, last := context.WithCancel(ctx)
	l.end, l.last = end, last
	l.running.Go(func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-further.Done():
				return
			}
			call(ctx)
			timer.Reset(interval)
		}
	})
}

// Stop ends the calls, and waits until none runs any more or ctx ends. It is safe without
// Start and to call again.
func (l *Loop) Stop(ctx context.Context) error {
	if l.end == nil {
		return nil
	}
	l.end()
	return Await(ctx, l.running.Wait)
}

// Finish ends the calls as Stop does, but lets one that runs go on until ctx ends.
func (l *Loop) Finish(ctx context.Context) {
	if l.end == nil {
		return
	}
	l.last()
	defer context.AfterFunc(ctx, l.end)()
	l.running.Wait()
	l.end()
}
