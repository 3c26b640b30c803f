package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// BenchmarkReadSpan reads one span of ten attributes.
func BenchmarkReadSpan(b *testing.B) {
	for _, bench := range []struct {
		name, span string
		attrs      map[string]any
	}{
		{"stranger", "GET /cart", map[string]any{
			"http.request.method": "GET", "url.path": "/cart", "url.scheme": "https", "http.response.status_code": 200,
			"server.address": "shop.example", "server.port": 443, "network.protocol.version": "2", "user_agent.original": "curl/8",
			"client.address": "192.0.2.7", "thread.id": 7,
		}},
		{"tuning", "training_backend.forward", map[string]any{
			"tuft.session_id": "5f2c8e0a", "tuft.training_run_id": "0b9d5b7e", "tuft.request_id": "c0ffee00", "tuft.base_model": "Qwen/Qwen3-4B",
			"tuft.data_count": 8, "tuft.lora_rank": 16, "tuft.loss_fn": "cross_entropy", "tuft.backward": true, "code.function": "run", "thread.id": 7,
		}},
		{"client", "ChatCompletion", map[string]any{
			"openinference.span.kind": "LLM", "llm.system": "openai", "llm.model_name": "m", "llm.token_count.prompt": 7,
			"llm.token_count.completion": 3, "llm.token_count.total": 10, "input.mime_type": "application/json", "input.value": "{}",
			"output.value": "{}", "session.id": "s",
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			span := ptrace.NewSpan()
			span.SetName(bench.span)
			require.NoError(b, span.Attributes().FromRaw(bench.attrs))
			r, f := vocabulary.Default(), new(vocabulary.Facts)
			b.ReportAllocs()
			for b.Loop() {
				r.Span(0, span, f)
			}
		})
		b.Run(bench.name+"/enriched", func(b *testing.B) {
			span := ptrace.NewSpan()
			span.SetName(bench.span)
			require.NoError(b, span.Attributes().FromRaw(bench.attrs))
			r, f := vocabulary.Default(), new(vocabulary.Facts)
			r.Span(0, span, f)
			for fact := range f.All() {
				fact.Put(span.Attributes())
			}
			ctx, end := vocabulary.WithEnriched(b.Context())
			defer end()
			var pass vocabulary.Pass
			pass.Begin(ctx, r, ptrace.NewTraces())
			b.ReportAllocs()
			for b.Loop() {
				pass.Next(0, span, span)
			}
		})
		b.Run(bench.name+"/again", func(b *testing.B) {
			span := ptrace.NewSpan()
			span.SetName(bench.span)
			require.NoError(b, span.Attributes().FromRaw(bench.attrs))
			r, f := vocabulary.Default(), new(vocabulary.Facts)
			r.Span(0, span, f)
			for fact := range f.All() {
				fact.Put(span.Attributes())
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Span(0, span, f)
			}
		})
	}
}
