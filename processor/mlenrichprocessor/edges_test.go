package mlenrichprocessor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// skips is what the processor says that it left out, by reason.
func (p *pipelines) skips(tb testing.TB) map[string]int64 {
	tb.Helper()
	found := make(map[string]int64)
	m, err := p.telemetry.GetMetric("otelcol_processor_ml_enrich_rates_skipped")
	if err != nil {
		return found // nothing was left out
	}
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, ok := point.Attributes.Value("reason")
		require.True(tb, ok)
		found[reason.AsString()] = point.Value
	}
	return found
}

// TestEdgesOfARate sends what real clients send at the edges, one span each,
// and shows all that concerns rates and counting of what came out. The edges
// about several spans are in usage_test.go and answers_test.go, those about
// metrics in streams_test.go.
func TestEdgesOfARate(t *testing.T) {
	type attrs = map[string]any
	tests := map[string]struct {
		name       string
		service    string // empty is assistant
		start, end uint64 // in ms; both 0 is 1000 and 4000
		failed     bool
		attrs      attrs
		want       attrs
		skips      map[string]int64
	}{
		"golden vector": {
			attrs: attrs{"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 51, "gen_ai.response.time_to_first_chunk": 0.5},
			want:  attrs{"ml.tokens_per_second": 17.0, "ml.tokens_per_second.decode": 20.0, "ml.throughput.basis": "span"},
		},
		"golden vector: one token": {
			attrs: attrs{"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 1, "gen_ai.response.time_to_first_chunk": 0.5},
			want:  attrs{"ml.tokens_per_second": 1.0 / 3, "ml.throughput.basis": "span"},
		},
		"duration is zero": {
			start: 2000, end: 2000, attrs: attrs{"gen_ai.usage.output_tokens": 51}, skips: map[string]int64{"negative_duration": 1},
		},
		"end before start": {
			start: 2000, end: 1000, attrs: attrs{"gen_ai.usage.output_tokens": 51}, skips: map[string]int64{"negative_duration": 1},
		},
		"latency is NaN": {
			attrs: attrs{"gen_ai.usage.output_tokens": 51, "gen_ai.latency.e2e": math.NaN()}, skips: map[string]int64{"negative_duration": 1},
		},
		"latency is infinite": {
			attrs: attrs{"gen_ai.usage.output_tokens": 51, "gen_ai.latency.e2e": math.Inf(1)}, skips: map[string]int64{"negative_duration": 1},
		},
		"below a millisecond": {
			attrs: attrs{"gen_ai.usage.output_tokens": 51, "gen_ai.latency.e2e": 0.0009}, skips: map[string]int64{"short_duration": 1},
		},
		"tokens missing": {
			attrs: attrs{"gen_ai.usage.input_tokens": 100}, skips: map[string]int64{"missing_tokens": 1},
		},
		"no output": {
			attrs: attrs{"gen_ai.usage.output_tokens": 0}, want: attrs{"ml.tokens_per_second": 0.0, "ml.throughput.basis": "span"},
		},
		"no output, status error": {
			failed: true, attrs: attrs{"gen_ai.usage.output_tokens": 0}, skips: map[string]int64{"failed_without_output": 1},
		},
		"an error without usage": {
			failed: true, attrs: attrs{"gen_ai.operation.name": "chat"},
		},
		"first token before the request: clocks of two hosts": {
			attrs: attrs{"gen_ai.usage.output_tokens": 51, "gen_ai.response.time_to_first_chunk": -0.5},
			want:  attrs{"ml.tokens_per_second": 17.0, "ml.throughput.basis": "span"}, skips: map[string]int64{"first_token": 1},
		},
		"first token at the end: not streaming": {
			attrs: attrs{"gen_ai.usage.output_tokens": 51, "gen_ai.response.time_to_first_chunk": 3.0},
			want:  attrs{"ml.tokens_per_second": 17.0, "ml.throughput.basis": "span"}, skips: map[string]int64{"first_token": 1},
		},
		"no first token: not streaming": {
			attrs: attrs{"gen_ai.usage.output_tokens": 51}, want: attrs{"ml.tokens_per_second": 17.0, "ml.throughput.basis": "span"},
		},
		"cache tokens are part of the input": {
			attrs: attrs{"gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 40, "gen_ai.operation.name": "embeddings"},
			want:  attrs{"ml.tokens_per_second": 100.0 / 3, "ml.throughput.basis": "span"},
		},
		"cache tokens are more than the input": {
			attrs: attrs{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 60,
				"gen_ai.usage.cache_creation.input_tokens": 20, "gen_ai.operation.name": "embeddings"},
			want: attrs{"ml.usage.input_tokens": int64(90), "ml.tokens_per_second": 30.0, "ml.throughput.basis": "span"},
		},
		"an aggregate of which no call is seen": {
			name: "ai.streamText", attrs: attrs{"gen_ai.usage.output_tokens": 51},
			want: attrs{"ml.tokens_per_second": 17.0, "ml.throughput.basis": "span"},
		},
		"several answers": {
			attrs: attrs{"gen_ai.usage.output_tokens": 60, "gen_ai.request.choice.count": 4},
			want:  attrs{"ml.tokens_per_second": 20.0, "ml.tokens_per_second.per_sequence": 5.0, "ml.throughput.basis": "span"},
		},
		"units: the attribute's name has them": {
			attrs: attrs{"snakepit.grpc.duration_ms": 500, "gen_ai.usage.output_tokens": 10},
			want:  attrs{"ml.tokens_per_second": 20.0, "ml.throughput.basis": "span"},
		},
		"units: no size is too small to be seconds": {
			attrs: attrs{"gen_ai.latency.e2e": 500.0, "gen_ai.usage.output_tokens": 10},
			want:  attrs{"ml.tokens_per_second": 0.02, "ml.throughput.basis": "span"},
		},
		"units: a text has them": {
			attrs: attrs{"gen_ai.latency.e2e": "456.5ms", "gen_ai.usage.output_tokens": 913},
			want:  attrs{"ml.tokens_per_second": 2000.0, "ml.throughput.basis": "span"},
		},
		// vLLM's span is made when the request has ended, and its length says
		// nothing: this one is of 30 s.
		"vLLM: the latency is the duration": {
			start: 1000, end: 31000, attrs: attrs{"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 51,
				"gen_ai.latency.e2e": 3.0, "gen_ai.latency.time_to_first_token": 0.5, "gen_ai.latency.time_in_queue": 0.1},
			want: attrs{"ml.tokens_per_second": 17.0, "ml.tokens_per_second.decode": 20.0, "ml.throughput.basis": "span"},
		},
		"vLLM: the model's own times are the parts'": {
			start: 1000, end: 31000, attrs: attrs{"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 51,
				"gen_ai.usage.cache_read.input_tokens": 20, "gen_ai.latency.e2e": 3.0, "gen_ai.latency.time_to_first_token": 0.5,
				"gen_ai.latency.time_in_model_prefill": 0.4, "gen_ai.latency.time_in_model_decode": 2.0,
				"gen_ai.latency.time_in_model_inference": 2.4, "gen_ai.latency.time_in_model_forward": 2300.0,
				"gen_ai.latency.time_in_model_execute": 2350.0, "gen_ai.latency.time_in_scheduler": 0.01},
			want: attrs{"ml.tokens_per_second": 17.0, "ml.tokens_per_second.decode": 25.0, "ml.tokens_per_second.prefill": 200.0,
				"ml.throughput.basis": "span"},
		},
		"vLLM: a decoding of no time, of one token": {
			attrs: attrs{"gen_ai.usage.completion_tokens": 1, "gen_ai.latency.e2e": 0.5, "gen_ai.latency.time_in_model_decode": 0.0},
			want:  attrs{"ml.tokens_per_second": 2.0, "ml.throughput.basis": "span"},
		},
		"vLLM: no latency but the first token's": {
			attrs: attrs{"gen_ai.usage.completion_tokens": 51, "gen_ai.latency.time_to_first_token": 0.5},
			want:  attrs{"ml.tokens_per_second": 17.0, "ml.tokens_per_second.decode": 20.0, "ml.throughput.basis": "span"},
		},
		"TGI: one over its time per token": {
			service: "text-generation-inference.router", attrs: attrs{"total_time": "1.23s", "queue_time": "45.6ms",
				"validation_time": "789µs", "inference_time": "1.18s", "time_per_token": "20ms"},
			want: attrs{"ml.tokens_per_second": 50.0, "ml.throughput.basis": "reported"},
		},
		"TGI: no token at all": {
			service: "text-generation-inference.router", attrs: attrs{"total_time": "1.23s", "time_per_token": "0ns"},
		},
		"TGI: the whole time is the duration": {
			service: "text-generation-inference.router", attrs: attrs{"total_time": "0.5s", "gen_ai.usage.output_tokens": 10},
			want: attrs{"ml.tokens_per_second": 20.0, "ml.throughput.basis": "span"},
		},
		"a stranger's time per token": {attrs: attrs{"total_time": "1.23s", "time_per_token": "20ms"}},
		"cache tokens that are more than the input, by the conventions' name": {
			attrs: attrs{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 90},
			want:  attrs{"ml.usage.input_tokens": int64(100)}, skips: map[string]int64{"missing_tokens": 1},
		},
	}
	about := []string{"ml.usage.input_tokens", "ml.tokens_per_second", "ml.tokens_per_second.decode", "ml.tokens_per_second.prefill", "ml.tokens_per_second.per_sequence",
		"ml.samples_per_second", "ml.samples_per_second.basis", "ml.throughput.basis", "ml.throughput.scope", "ml.usage.counted", "ml.side"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.service == "" {
				tt.service = "assistant"
			}
			td := batchOf(tt.service, testSpan{7, 1, 0, tt.name, tt.attrs})
			span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			if tt.start == 0 && tt.end == 0 {
				tt.start, tt.end = 1000, 4000
			}
			span.SetStartTimestamp(pcommon.Timestamp(tt.start * 1e6))
			span.SetEndTimestamp(pcommon.Timestamp(tt.end * 1e6))
			if tt.failed {
				span.Status().SetCode(ptrace.StatusCodeError)
			}
			p := startDefault(t)
			out := p.sendTraces(t, td).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
			got := attrs{}
			for _, key := range about {
				if value, ok := out[key]; ok {
					got[key] = value
				}
			}
			if tt.want == nil {
				tt.want = attrs{}
			}
			assert.Equal(t, tt.want, got)
			if tt.skips == nil {
				tt.skips = map[string]int64{}
			}
			assert.Equal(t, tt.skips, p.skips(t))
		})
	}
}
