package shared

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
)

// pipeline takes records, after free was closed.
type pipeline struct {
	entered, free chan struct{}
	records       int
}

func (*pipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *pipeline) ConsumeLogs(context.Context, plog.Logs) error {
	p.entered <- struct{}{}
	<-p.free
	p.records++
	return nil
}

// What is on its way into a pipeline arrives before Remove returns, and nothing is
// sent there afterwards.
func TestOutletsWaitForRecords(t *testing.T) {
	slow := &pipeline{entered: make(chan struct{}, 8), free: make(chan struct{})}
	var o Outlets
	assert.False(t, o.Any())
	o.Add(slow)
	assert.True(t, o.Any())
	sent, removed := make(chan bool, 1), make(chan struct{})
	go func() {
		ok, err := o.Send(context.Background(), plog.NewLogs())
		sent <- ok && err == nil
	}()
	<-slow.entered
	go func() {
		o.Remove(context.Background(), slow)
		close(removed)
	}()
	for o.Any() {
		select {
		case <-removed:
			require.Fail(t, "it was not waited for")
		default:
		}
	}
	close(slow.free)
	<-removed
	assert.True(t, <-sent)
	assert.Equal(t, 1, slow.records)
	again, err := o.Send(t.Context(), plog.NewLogs())
	require.NoError(t, err)
	assert.False(t, again)
	o.Remove(t.Context(), slow)
}

// A pipeline that never comes back does not hold up its end.
func TestAPipelineThatHangs(t *testing.T) {
	hangs := &pipeline{entered: make(chan struct{}, 8), free: make(chan struct{})}
	var o Outlets
	o.Add(hangs)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = o.Send(context.Background(), plog.NewLogs())
	}()
	<-hangs.entered
	ended, end := context.WithCancel(t.Context())
	end()
	o.Remove(ended, hangs)
	close(hangs.free)
	<-done
}

// Of two pipelines one gets the records.
func TestTwoPipelines(t *testing.T) {
	free := make(chan struct{})
	close(free)
	one, two := &pipeline{entered: make(chan struct{}, 8), free: free}, &pipeline{entered: make(chan struct{}, 8), free: free}
	var o Outlets
	o.Add(one)
	o.Add(two)
	_, err := o.Send(t.Context(), plog.NewLogs())
	require.NoError(t, err)
	o.Remove(t.Context(), one)
	_, err = o.Send(t.Context(), plog.NewLogs())
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, []int{one.records, two.records})
}
