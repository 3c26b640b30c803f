package mlmetricsconnector

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestAllocations asserts what a span costs in allocations, once its streams
// are there. The spans of a training are those of steps, whose times are kept
// until the next emission. The lower quartile of the requests counts: the race
// detector makes the pool of readers forget one in four by chance, and a
// request that finds the pool empty allocates its reader again.
func TestAllocations(t *testing.T) {
	for kind, most := range map[string]float64{
		"stranger": 0.02, "agent": 0.15, "llm": 0.15, "training": 0.3, "tuning": 0.3, "batches": 0.3, "mixed": 0.3,
	} {
		t.Run(kind, func(t *testing.T) {
			next := consumertest.NewNop()
			c := start(t, createDefaultConfig().(*Config), next)
			c.(*metricsConnector).Shared.outlets.Add(next)
			ctx, end := vocabulary.WithEnriched(t.Context())
			defer end()
			const warm, measured = 8, 32
			round := 0
			request := func() ptrace.Traces {
				td := benchSpans(kind, 512)
				renew(td, uint64(round)) // #nosec G115 -- not negative
				round++
				return td
			}
			for range warm {
				require.NoError(t, c.ConsumeTraces(ctx, request()))
			}
			var costs []float64
			for range measured {
				// AllocsPerRun calls once before it measures.
				both := []ptrace.Traces{request(), request()}
				spans := float64(both[1].SpanCount())
				costs = append(costs, testing.AllocsPerRun(1, func() {
					_ = c.ConsumeTraces(ctx, both[0])
					both = both[1:]
				})/spans)
			}
			slices.Sort(costs)
			cost := costs[measured/4]
			assert.LessOrEqual(t, cost, most)
			t.Logf("%.3f allocations a span", cost)
			require.NoError(t, c.Shutdown(t.Context()))
		})
	}
}
