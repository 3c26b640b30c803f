package rate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestDerive covers how rates of different bases share a span of 2 s.
func TestDerive(t *testing.T) {
	tests := map[string]struct {
		attrs map[string]any
		want  map[string]any
		left  Skipped
		// instant is true for a span without a duration.
		instant bool
	}{
		"a reported rate is kept, and samples are divided": {
			attrs: map[string]any{"ml.tokens_per_second": 5.0, "ml.batch.size": 4},
			want:  map[string]any{"ml.samples_per_second": 2.0, "ml.samples_per_second.basis": "span"},
		},
		"samples alone": {
			attrs: map[string]any{"ml.batch.size": 4},
			want:  map[string]any{"ml.samples_per_second": 2.0, "ml.throughput.basis": "span"},
		},
		"a loader's samples are no throughput": {
			attrs: map[string]any{"ml.batch.size": 4, "ml.phase": "data_load"},
			want:  map[string]any{},
		},
		"the producer's latency is the better duration": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 4, "gen_ai.latency.e2e": 0.5},
			want:  map[string]any{"ml.tokens_per_second": 8.0, "ml.throughput.basis": "span"},
		},
		"a broken latency is not replaced": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 4, "gen_ai.latency.e2e": math.NaN()},
			want:  map[string]any{}, left: Skipped{negativeDuration: 1},
		},
		"negative tokens are no tokens": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": -4},
			want:  map[string]any{},
		},
		"decoding beside the whole": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 31, "gen_ai.response.time_to_first_chunk": 0.5},
			want:  map[string]any{"ml.tokens_per_second": 15.5, "ml.tokens_per_second.decode": 20.0, "ml.throughput.basis": "span"},
		},
		"several answers": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 40, "gen_ai.request.choice.count": 4},
			want:  map[string]any{"ml.tokens_per_second": 20.0, "ml.tokens_per_second.per_sequence": 5.0, "ml.throughput.basis": "span"},
		},
		"a reported rate is not shared out": {
			attrs: map[string]any{"ml.tokens_per_second": 5.0, "ml.throughput.basis": "reported", "gen_ai.request.choice.count": 4},
			want:  map[string]any{},
		},
		"a first token after the end leaves no rate": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 30, "gen_ai.response.time_to_first_chunk": 2.5},
			want:  map[string]any{},
			left:  Skipped{firstTokenOutside: 2},
		},
		"a rate that is there is not replaced": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 31, "gen_ai.response.time_to_first_chunk": 0.5, "ml.tokens_per_second.decode": 1.0},
			want:  map[string]any{"ml.tokens_per_second": 15.5, "ml.throughput.basis": "span"},
		},
		"the client's word for its input, without the cache": {
			attrs: map[string]any{"llm.usage.prompt_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 90, "gen_ai.usage.output_tokens": 4},
			want: map[string]any{"gen_ai.usage.input_tokens": int64(100), "ml.usage.input_tokens": int64(100),
				"ml.tokens_per_second": 2.0, "ml.throughput.basis": "span"},
		},
		"the canonical input is the producer's and stays": {
			attrs: map[string]any{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 90, "gen_ai.operation.name": "embeddings"},
			want:  map[string]any{"ml.usage.input_tokens": int64(100), "ml.tokens_per_second": 50.0, "ml.throughput.basis": "span"},
		},
		"training says what went in": {
			attrs: map[string]any{"ml.phase": "forward_backward", "gen_ai.usage.input_tokens": 4096},
			want:  map[string]any{"ml.tokens_per_second": 2048.0, "ml.throughput.basis": "span"},
		},
		"training that says what came out, as of answers that are rewarded": {
			attrs: map[string]any{"ml.phase": "train", "gen_ai.usage.input_tokens": 4096, "gen_ai.usage.output_tokens": 100},
			want:  map[string]any{"ml.tokens_per_second": 50.0, "ml.throughput.basis": "span"},
		},
		"an optimizer reads no tokens": {
			attrs: map[string]any{"ml.phase": "optimizer", "gen_ai.usage.input_tokens": 4096},
			want:  map[string]any{}, left: Skipped{missingTokens: 1},
		},
		"a phase that is the parent's": {
			attrs: map[string]any{"ml.phase": "train", "ml.correlation.source": "phase=parent", "gen_ai.usage.input_tokens": 4096},
			want:  map[string]any{}, left: Skipped{missingTokens: 1},
		},
		"a reported rate of one GPU": {
			attrs: map[string]any{"snakepit.worker.id": "w", "tokens_per_second": 7.0, "device": "{:cuda, 3}"},
			want: map[string]any{"ml.tokens_per_second": 7.0, "ml.throughput.basis": "reported", "ml.throughput.scope": "device",
				"ml.gpu.index": int64(3), "ml.operation": "inference"},
		},
		"a reported rate of nobody knows what": {
			attrs: map[string]any{"snakepit.worker.id": "w", "tokens_per_second": 7.0},
			want:  map[string]any{"ml.tokens_per_second": 7.0, "ml.throughput.basis": "reported", "ml.operation": "inference"},
		},
		"a duration of less than a millisecond": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 4, "gen_ai.latency.e2e": 0.0009},
			want:  map[string]any{}, left: Skipped{shortDuration: 1},
		},
		"more tokens than a request can have": {
			attrs: map[string]any{"gen_ai.usage.output_tokens": 1<<53 + 1},
			want:  map[string]any{},
		},
		"the end of a stream": {
			attrs:   map[string]any{"gen_ai.usage.output_tokens": 11, "gen_ai.latency.time_in_model_decode": 0.5},
			instant: true,
			want:    map[string]any{"ml.tokens_per_second.decode": 20.0, "ml.throughput.basis": "decode"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.SetName("snakepit.ml.inference")
			if tt.attrs["snakepit.worker.id"] == nil {
				span.SetName("a span")
			}
			require.NoError(t, span.Attributes().FromRaw(tt.attrs))
			span.SetStartTimestamp(1_000_000_000)
			span.SetEndTimestamp(3_000_000_000)
			if tt.instant {
				span.SetStartTimestamp(span.EndTimestamp())
			}
			_, f := vocabulary.Classify(pcommon.NewMap(), "", span)
			left := make(Skipped)
			Derive(f, span, 0, left)
			got := pcommon.NewMap()
			for fact := range f.All() {
				fact.Put(got)
			}
			assert.Equal(t, tt.want, got.AsRaw())
			if tt.left == nil {
				tt.left = Skipped{}
			}
			assert.Equal(t, tt.left, left)

			// What was added changes nothing when it is read again.
			for key, value := range got.All() {
				value.CopyTo(span.Attributes().PutEmpty(key))
			}
			_, f = vocabulary.Classify(pcommon.NewMap(), "", span)
			Derive(f, span, 0, left)
			got = pcommon.NewMap()
			for fact := range f.All() {
				fact.Put(got)
			}
			assert.Empty(t, got.AsRaw(), "a second pass")
		})
	}
}
