package mlmetricsconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestInputTokensOfCaches counts the input of a request with what caches gave
// and took, by the same rule as its rates: whether ml_enrich said so, which
// knows what is configured, or the producer's numbers do.
func TestInputTokensOfCaches(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs map[string]any
		want  int64
	}{
		"no cache":                  {map[string]any{"gen_ai.usage.input_tokens": 10}, 10},
		"as the conventions count":  {map[string]any{"gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 90}, 100},
		"more than the input":       {map[string]any{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 90}, 100},
		"under a client's own name": {map[string]any{"llm.usage.prompt_tokens": 10, "gen_ai.usage.cache_read_input_tokens": 60, "gen_ai.usage.cache_creation_input_tokens": 30}, 100},
		"as ml_enrich says":         {map[string]any{"gen_ai.usage.input_tokens": 60, "gen_ai.usage.cache_read.input_tokens": 40, "ml.usage.input_tokens": 100}, 100},
		"as ml_enrich says first":   {map[string]any{"ml.usage.input_tokens": 100, "gen_ai.usage.input_tokens": 60}, 100},
		"something that is no count": {
			map[string]any{"gen_ai.usage.input_tokens": 60, "gen_ai.usage.cache_read.input_tokens": 40, "ml.usage.input_tokens": "all"}, 60,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sink := new(consumertest.MetricsSink)
			c := start(t, NewFactory().CreateDefaultConfig().(*Config), sink)
			td := ptrace.NewTraces()
			require.NoError(t, addSpan(td, "", 1, 1).Attributes().FromRaw(tt.attrs))
			require.NoError(t, c.ConsumeTraces(t.Context(), td))
			require.NoError(t, c.Shutdown(t.Context()))
			assert.Equal(t, tt.want, counters(lastOf(t, sink))["ml.tokens"])
		})
	}
}
