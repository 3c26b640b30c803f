package mlmetricsconnector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestDevices(t *testing.T) {
	for text, want := range map[string]string{
		"cuda:0":              "cuda:0",
		"{:cuda, 0}":          "cuda:0",
		"{:cuda,11}":          "cuda:11",
		":mps":                "mps",
		"cpu":                 "cpu",
		"nil":                 "",
		"":                    "",
		"{:cuda}":             "",
		"{:cuda, 0} and more": "",
		"two words":           "",
	} {
		assert.Equal(t, want, device(pcommon.NewValueStr(text)), text)
	}
	assert.Equal(t, "3", device(pcommon.NewValueInt(3)))
	assert.LessOrEqual(t, len(device(pcommon.NewValueStr("{:"+strings.Repeat("x", 500)+", 0}"))), 128)
}

func TestAtoms(t *testing.T) {
	assert.True(t, isAtom("segfault"))
	assert.True(t, isAtom("high_crash_rate"))
	for _, text := range []string{"", "{:exit_status,137}", "Elixir.X", "137"} {
		assert.False(t, isAtom(text), text)
	}
}

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
