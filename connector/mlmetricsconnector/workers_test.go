package mlmetricsconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestMemoryFromBeforeTheStart releases what was allocated before the
// connector was there: what comes after it must be right all the same.
func TestMemoryFromBeforeTheStart(t *testing.T) {
	next := new(consumertest.MetricsSink)
	c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
	td := ptrace.NewTraces()
	span := addSpan(td, "", 1, 1)
	for _, e := range []struct {
		name  string
		bytes int64
	}{
		{"snakepit.memory.release", 1000}, {"snakepit.memory.allocate", 300},
		{"snakepit.memory.allocate", 200}, {"snakepit.memory.release", 100},
	} {
		event := span.Events().AppendEmpty()
		event.SetName(e.name)
		event.Attributes().PutInt("bytes", e.bytes)
	}
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))
	sum := find(t, lastOf(t, next), "ml.memory.allocated").Sum()
	assert.False(t, sum.IsMonotonic())
	assert.Equal(t, int64(400), sum.DataPoints().At(0).IntValue())
}
