package mlmetricsconnector

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestRecordedOptimizers counts the steps of training loops whose optimizers are
// not one after each forward pass. testdata/optimizers/record.py had TorchTel
// trace them: four steps each.
func TestRecordedOptimizers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "optimizers", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var spans []ptrace.Traces
		for request := range bytes.Lines(text) {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(request)
			require.NoError(t, err)
			td.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", "r")
			spans = append(spans, singly(td)...)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			next := new(consumertest.MetricsSink)
			c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
			for _, request := range spans {
				require.NoError(t, c.ConsumeTraces(t.Context(), request))
			}
			require.NoError(t, c.Shutdown(t.Context()))
			md := lastOf(t, next)
			assert.Equal(t, int64(4), counters(md)["ml.steps"])
			assert.Equal(t, uint64(4), timedSteps(t, md))
			assert.Equal(t, "ended", state(t, md))
		})
		t.Run(filepath.Base(file)+" in any order", func(t *testing.T) {
			for range 20 {
				rand.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
				next := new(consumertest.MetricsSink)
				c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
				request := ptrace.NewTraces()
				for i, td := range spans {
					td.ResourceSpans().At(0).CopyTo(request.ResourceSpans().AppendEmpty())
					if i == len(spans)/2 {
						require.NoError(t, c.ConsumeTraces(t.Context(), request))
						request = ptrace.NewTraces()
					}
				}
				require.NoError(t, c.ConsumeTraces(t.Context(), request))
				require.NoError(t, c.Shutdown(t.Context()))
				// Optimizers whose forwards come later may be taken for too many
				// steps, until others follow.
				assert.GreaterOrEqual(t, counters(lastOf(t, next))["ml.steps"], int64(4))
			}
		})
	}
}
