package mlmetricsconnector

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestAllocations asserts what a span costs in allocations, once its streams
// are there. The spans of a training are those of steps, whose times are kept
// until the next emission. The least of several measurements counts, because
// the race detector makes the pool of readers forget some by chance.
func TestAllocations(t *testing.T) {
	for kind, most := range map[string]float64{
		"stranger": 0.02, "agent": 0.15, "llm": 0.15, "training": 0.3, "tuning": 0.3, "batches": 0.3, "mixed": 0.3,
	} {
		t.Run(kind, func(t *testing.T) {
			next := consumertest.NewNop()
			c := start(t, createDefaultConfig().(*Config), next)
			c.(*metricsConnector).shared.outlets.Add(next)
			ctx := vocabulary.WithEnriched(t.Context())
			const requests, measurements = 12, 4
			var all []ptrace.Traces
			for round := range measurements*requests + 8 {
				td := benchSpans(kind, 512)
				renew(td, uint64(round)) // #nosec G115 -- not negative
				all = append(all, td)
			}
			for _, td := range all[measurements*requests:] {
				require.NoError(t, c.ConsumeTraces(ctx, td))
			}
			round, least := 0, math.Inf(1)
			for range measurements {
				allocs := testing.AllocsPerRun(requests-1, func() {
					_ = c.ConsumeTraces(ctx, all[round])
					round++
				})
				least = min(least, allocs/float64(all[0].SpanCount()))
			}
			assert.LessOrEqual(t, least, most)
			t.Logf("%.3f allocations a span", least)
			require.NoError(t, c.Shutdown(t.Context()))
		})
	}
}
