package nvmlsource

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestCallsRunOneAfterTheOther(t *testing.T) {
	c := &calls{}
	defer c.stop()
	running := 0
	for range 100 {
		// The race detector sees it if two jobs ran at once.
		assert.Equal(t, completed, c.do(t.Context(), time.Minute, "a", func() { running++ }))
	}
	assert.Equal(t, 100, running)
}

// A call that hangs costs its own subject further calls, and no other.
func TestCallsGoOnBesideAHungOne(t *testing.T) {
	c := &calls{}
	defer c.stop()
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
	c := &calls{}
	defer c.stop()
	release := make(chan struct{})
	// On a busy machine the time can be over before the goroutine has begun.
	result := refused
	for result == refused {
		result = c.do(t.Context(), time.Millisecond, "a", func() { <-release })
	}
	assert.Equal(t, abandoned, result)
	assert.False(t, c.settle(t.Context(), time.Millisecond))
	close(release)
	assert.True(t, c.settle(t.Context(), time.Hour))
}

// A job that waits for a goroutine that is busy with another's job is refused,
// and its subject is not taken for a hung one.
func TestCallsRefuseWhileBusy(t *testing.T) {
	c := &calls{}
	defer c.stop()
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

func TestCallsOfTheProcessEndWithTheirLastUser(t *testing.T) {
	first, second := acquireCalls(), acquireCalls()
	require.Same(t, first, second)
	releaseCalls()
	assert.Equal(t, completed, second.do(t.Context(), time.Hour, "a", func() {}))
	releaseCalls()
	// goleak sees it if the goroutine is still there.
}
