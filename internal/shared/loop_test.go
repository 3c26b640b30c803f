package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loop Loop
		began := time.Now()
		var calls []time.Duration
		loop.Start(time.Second, time.Minute, func(context.Context) {
			calls = append(calls, time.Since(began))
			time.Sleep(time.Second)
		})
		time.Sleep(3 * time.Minute)
		assert.NoError(t, loop.Stop(t.Context()))
		assert.NoError(t, loop.Stop(t.Context()))
		assert.Equal(t, []time.Duration{time.Second, 62 * time.Second, 123 * time.Second}, calls)
	})
}

// A call is interrupted, and who stops does not wait longer than it wants to.
func TestLoopThatIsStopped(t *testing.T) {
	var loop Loop
	begun, interrupted, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	loop.Start(0, time.Hour, func(ctx context.Context) {
		close(begun)
		<-ctx.Done()
		close(interrupted)
		<-goOn
	})
	<-begun
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, loop.Stop(impatient), context.Canceled)
	<-interrupted
	close(goOn)
	assert.NoError(t, loop.Stop(t.Context()))
}

func TestLoopThatNeverStarted(t *testing.T) {
	assert.NoError(t, new(Loop).Stop(t.Context()))
}

// A call goes on while who finishes waits, and is interrupted when that takes too long.
func TestLoopThatIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for patience, wants := range map[time.Duration]time.Duration{time.Hour: time.Minute, time.Second: time.Second} {
			var loop Loop
			var took time.Duration
			loop.Start(0, time.Second, func(ctx context.Context) {
				began := time.Now()
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
				took = time.Since(began)
			})
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			loop.Finish(ctx)
			cancel()
			assert.Equal(t, wants, took)
		}
		new(Loop).Finish(t.Context())
	})
}
