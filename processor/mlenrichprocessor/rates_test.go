package mlenrichprocessor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestTokensPerSecond(t *testing.T) {
	some := func(n int64) count { return count{n: n, ok: true} }
	tests := []struct {
		name   string
		work   work
		want   float64
		wanted bool
		reason skip
	}{
		{name: "golden vector: 51 output tokens in 3 s", work: work{seconds: 3, input: some(100), output: some(51)}, want: 17, wanted: true},
		{name: "an embedding's work is its input", work: work{seconds: 2, embedding: true, input: some(200)}, want: 100, wanted: true},
		{name: "nothing to derive", work: work{seconds: 1}},
		{name: "input alone is no generation", work: work{seconds: 1, input: some(5)}, wanted: true, reason: skipMissingTokens},
		{name: "an embedding without input", work: work{seconds: 1, embedding: true, output: some(5)}, wanted: true, reason: skipMissingTokens},
		{name: "no output of a success is a rate of 0", work: work{seconds: 1, output: some(0)}, want: 0, wanted: true},
		{name: "no output of a failure is no rate", work: work{seconds: 1, failed: true, output: some(0)}, wanted: true, reason: skipFailedWithoutOutput},
		{name: "some output of a failure is a rate", work: work{seconds: 2, failed: true, output: some(4)}, want: 2, wanted: true},
		{name: "no time", work: work{output: some(4)}, wanted: true, reason: skipNegativeDuration},
		{name: "a clock that went back", work: work{seconds: -1, output: some(4)}, wanted: true, reason: skipNegativeDuration},
		{name: "NaN seconds", work: work{seconds: math.NaN(), output: some(4)}, wanted: true, reason: skipNegativeDuration},
		{name: "endless", work: work{seconds: math.Inf(1), output: some(4)}, wanted: true, reason: skipNegativeDuration},
		{name: "below 1 ms", work: work{seconds: 0.000999, output: some(4)}, wanted: true, reason: skipShortDuration},
		{name: "1 ms", work: work{seconds: 0.001, output: some(4)}, want: 4000, wanted: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, wanted, reason := tt.work.tokensPerSecond()
			assert.InDelta(t, tt.want, got, 1e-9)
			assert.Equal(t, tt.wanted, wanted)
			assert.Equal(t, tt.reason, reason)
		})
	}
}

func TestSeconds(t *testing.T) {
	assert.InDelta(t, 1.5, seconds(1e9, 25e8), 1e-12)
	assert.InDelta(t, -1.5, seconds(25e8, 1e9), 1e-12)
	assert.InDelta(t, 0, seconds(7, 7), 0)
	assert.Negative(t, seconds(math.MaxUint64, 0), "no overflow")
}

// TestDerive covers how rates of different bases share a span.
func TestDerive(t *testing.T) {
	const start, end = 1_000_000_000, 3_000_000_000
	tests := []struct {
		name  string
		attrs map[string]any
		want  map[string]any
		left  skipped
	}{
		{
			name:  "a reported rate is kept, and samples are divided",
			attrs: map[string]any{"ml.tokens_per_second": 5.0, "ml.batch.size": 4},
			want:  map[string]any{"ml.samples_per_second": 2.0, "ml.samples_per_second.basis": "span"},
		},
		{
			name:  "samples alone",
			attrs: map[string]any{"ml.batch.size": 4},
			want:  map[string]any{"ml.samples_per_second": 2.0, "ml.throughput.basis": "span"},
		},
		{
			name:  "a loader's samples are no throughput",
			attrs: map[string]any{"ml.batch.size": 4, "ml.phase": "data_load"},
			want:  map[string]any{},
		},
		{
			name:  "the producer's latency is the better duration",
			attrs: map[string]any{"gen_ai.usage.output_tokens": 4, "gen_ai.latency.e2e": 0.5},
			want:  map[string]any{"ml.tokens_per_second": 8.0, "ml.throughput.basis": "span"},
		},
		{
			name:  "a broken latency is not replaced",
			attrs: map[string]any{"gen_ai.usage.output_tokens": 4, "gen_ai.latency.e2e": math.NaN()},
			want:  map[string]any{}, left: skipped{skipNegativeDuration: 1},
		},
		{
			name:  "negative tokens are no tokens",
			attrs: map[string]any{"gen_ai.usage.output_tokens": -4},
			want:  map[string]any{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			span := ptrace.NewSpan()
			require.NoError(t, span.Attributes().FromRaw(tt.attrs))
			_, f := mlattr.Classify(pcommon.NewMap(), "", span)
			left := make(skipped)
			derive(f, start, end, false, left)
			got := pcommon.NewMap()
			for fact := range f.All() {
				fact.Put(got)
			}
			assert.Equal(t, tt.want, got.AsRaw())
			if tt.left == nil {
				tt.left = skipped{}
			}
			assert.Equal(t, tt.left, left)
		})
	}
}
