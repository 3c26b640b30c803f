package nvmlsource

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// step is a job of several.
type step struct {
	subject string
	run     func()
}

// doAll runs the steps one after the other, as a round does with the GPUs.
func doAll(ctx context.Context, c *calls, timeout time.Duration, steps []step) (outcomes []outcome) {
	for _, s := range steps {
		outcomes = append(outcomes, c.do(ctx, timeout, s.subject, s.run))
	}
	return outcomes
}

func TestCallsRunOneAfterTheOther(t *testing.T) {
	c := newCalls()
	running := 0
	for range 100 {
		// The race detector sees it if two jobs ran at once.
		assert.Equal(t, completed, c.do(t.Context(), time.Minute, "a", func() { running++ }))
	}
	assert.Equal(t, 100, running)
}

// A call that hangs costs its own subject further calls, and no other.
func TestCallsGoOnBesideAHungOne(t *testing.T) {
	c := newCalls()
	release, entered := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	assert.Equal(t, abandoned, c.do(ctx, time.Hour, "a", func() {
		close(entered)
		<-release
	}))
	assert.Equal(t, refused, c.do(t.Context(), time.Hour, "a", func() { t.Error("called while a call hangs") }))
	assert.Equal(t, completed, c.do(t.Context(), time.Hour, "b", func() {}))
	assert.False(t, c.settle(ctx, time.Hour), "ctx has ended")

	close(release)
	assert.True(t, c.settle(t.Context(), time.Hour))
	assert.Equal(t, completed, c.do(t.Context(), time.Hour, "a", func() {}))
}

func TestCallsTimeOut(t *testing.T) {
	c := newCalls()
	release := make(chan struct{})
	// On a busy machine the time to wait for a turn can be over although it is free.
	result := refused
	for result == refused {
		result = c.do(t.Context(), time.Millisecond, "a", func() { <-release })
	}
	assert.Equal(t, abandoned, result)
	assert.False(t, c.settle(t.Context(), time.Millisecond))
	close(release)
	assert.True(t, c.settle(t.Context(), time.Hour))
}

// One of several steps that hangs costs the others nothing, and its subject's
// later steps are not made.
func TestStepsGoOnBesideAHungOne(t *testing.T) {
	c := newCalls()
	release := make(chan struct{})
	var made []string
	note := func(name string) func() { return func() { made = append(made, name) } }
	outcomes := doAll(t.Context(), c, 100*time.Millisecond, []step{
		{"a", note("a")},
		{"b", func() { <-release }},
		{"b", func() { t.Error("called while a call hangs") }},
		{"c", note("c")},
		{"b", func() { t.Error("called while a call hangs") }},
		{"d", note("d")},
	})
	assert.Equal(t, []outcome{completed, abandoned, refused, completed, refused, completed}, outcomes)
	assert.Equal(t, []string{"a", "c", "d"}, made)
	close(release)
	assert.True(t, c.settle(t.Context(), time.Hour))
	assert.Equal(t, []outcome{completed}, doAll(t.Context(), c, time.Hour, []step{{"b", func() {}}}))
	assert.Empty(t, doAll(t.Context(), c, time.Hour, nil))
}

// Nothing more is made once nobody waits.
func TestStepsAreInterrupted(t *testing.T) {
	c := newCalls()
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	outcomes := doAll(ctx, c, time.Hour, []step{
		{"a", func() {}},
		{"b", func() { cancel(); <-release }},
		{"c", func() { t.Error("called after the end") }},
	})
	assert.Equal(t, []outcome{completed, abandoned, refused}, outcomes)
	close(release)
	assert.True(t, c.settle(t.Context(), time.Hour))
}

// Who waits gets a turn between two steps of another.
func TestStepsGiveWay(t *testing.T) {
	c := newCalls()
	entered, other := make(chan struct{}), make(chan struct{})
	ctx := newWaiting(t.Context())
	var made []string
	go func() {
		defer close(other)
		<-entered
		assert.Equal(t, completed, c.do(ctx, time.Hour, "x", func() { made = append(made, "x") }))
	}()
	outcomes := doAll(t.Context(), c, time.Hour, []step{
		{"a", func() {
			made = append(made, "a")
			close(entered)
			<-ctx.waits
		}},
		{"b", func() { <-other }},
	})
	assert.Equal(t, []outcome{completed, completed}, outcomes)
	assert.Equal(t, []string{"a", "x"}, made)
}

// A job that waits while another one runs all the time is refused,
// and its subject is not taken for a hung one.
func TestCallsRefuseWhileBusy(t *testing.T) {
	c := newCalls()
	release, entered, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.do(t.Context(), time.Hour, "a", func() {
			close(entered)
			<-release
		})
	}()
	<-entered
	assert.Equal(t, refused, c.do(t.Context(), time.Millisecond, "b", func() { t.Error("called at the same time") }))
	close(release)
	<-ended
	assert.Equal(t, completed, c.do(t.Context(), time.Hour, "b", func() {}))
}

// One that waits behind a call that hangs is served as soon as that is left
// behind, and not refused.
func TestCallsServeThoseWhoWaitedForAHungOne(t *testing.T) {
	c := newCalls()
	release, entered := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan outcome)
	go func() {
		first <- c.do(ctx, time.Hour, "a", func() {
			close(entered)
			<-release
		})
	}()
	<-entered
	other, same := make(chan outcome), make(chan outcome)
	otherWaits, sameWaits := newWaiting(t.Context()), newWaiting(t.Context())
	go func() { other <- c.do(otherWaits, time.Hour, "b", func() {}) }()
	go func() {
		same <- c.do(sameWaits, time.Hour, "a", func() { t.Error("called while a call hangs") })
	}()
	<-otherWaits.waits
	<-sameWaits.waits
	cancel()
	assert.Equal(t, abandoned, <-first)
	assert.Equal(t, completed, <-other)
	assert.Equal(t, refused, <-same, "its subject hangs")
	assert.True(t, c.hangs("a"))
	assert.False(t, c.hangs("b"))
	assert.True(t, c.hangs(""))
	close(release)
	assert.True(t, c.settle(t.Context(), time.Hour))
}

// Many callers, some of whose calls are left behind: no two calls about one
// subject run at once, and no more goroutines run than there are subjects
// that hang, and one.
func TestCallsWithManyCallers(t *testing.T) {
	c := newCalls()
	subjects := []string{"a", "b", "c", "d"}
	var mu sync.Mutex
	running := map[string]int{}
	enter := func(subject string) {
		mu.Lock()
		defer mu.Unlock()
		running[subject]++
		assert.Equal(t, 1, running[subject])
		assert.LessOrEqual(t, len(running), len(subjects))
	}
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			subject := subjects[i%len(subjects)]
			for n := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				c.do(ctx, time.Hour, subject, func() {
					enter(subject)
					if n%5 == 0 {
						cancel()
					}
					mu.Lock()
					defer mu.Unlock()
					delete(running, subject)
				})
				cancel()
			}
		})
	}
	wait.Wait()
	assert.True(t, c.settle(t.Context(), time.Hour))
	assert.Equal(t, completed, c.do(t.Context(), time.Hour, "a", func() {}))
}

// waitingContext shows that something waits for it.
type waitingContext struct {
	context.Context
	waits chan struct{}
	once  *sync.Once
}

func newWaiting(ctx context.Context) waitingContext {
	return waitingContext{ctx, make(chan struct{}), &sync.Once{}}
}

func (c waitingContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}
