package content_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/content"
)

// clean is a batch of spans of which all is kept.
func clean(spans int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "chat-api")
	rs.Resource().Attributes().PutStr("service.instance.id", "d1f601090d38417fabd5805e5502c598")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("openinference.instrumentation.openai")
	ss.Scope().SetVersion("0.1.34")
	for range spans {
		span := ss.Spans().AppendEmpty()
		span.SetName("chat tiny-1")
		for key, text := range map[string]string{
			"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny-1", "gen_ai.response.id": "chatcmpl-dd4880745d01cd38",
			"gen_ai.provider.name": "openai", "server.address": "127.0.0.1", "ml.run.id": "run-7", "ml.operation": "chat",
		} {
			span.Attributes().PutStr(key, text)
		}
		span.Attributes().PutInt("gen_ai.usage.input_tokens", 16)
		span.Attributes().PutInt("gen_ai.usage.output_tokens", 24)
		span.Attributes().PutInt("acme.retries", 1)
	}
	return td
}

func newFilter(tb testing.TB, cfg *content.Config) *content.Filter {
	tb.Helper()
	f, err := content.New(cfg)
	require.NoError(tb, err)
	return f
}

func TestWhatIsKeptCostsNoAllocation(t *testing.T) {
	f, td := newFilter(t, &content.Config{}), clean(100)
	assert.Zero(t, f.Traces(td).Replaced)
	// What iterating costs is per batch: the resource, the scope and their parts.
	assert.Less(t, testing.AllocsPerRun(20, func() { f.Traces(td) }), 10.0)
}

func BenchmarkKept(b *testing.B) {
	f, td := newFilter(b, &content.Config{}), clean(100)
	b.ReportAllocs()
	for b.Loop() {
		f.Traces(td)
	}
}

func BenchmarkReplaced(b *testing.B) {
	f, from := newFilter(b, &content.Config{}), clean(100)
	for _, span := range from.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		span.Attributes().PutStr("gen_ai.input.messages", `[{"role": "user", "content": "why"}]`)
		span.Attributes().PutStr("gen_ai.output.messages", `[{"role": "assistant", "content": "because"}]`)
	}
	td := ptrace.NewTraces()
	b.ReportAllocs()
	for b.Loop() {
		from.CopyTo(td)
		f.Traces(td)
	}
}

func BenchmarkCopy(b *testing.B) {
	from, td := clean(100), ptrace.NewTraces()
	b.ReportAllocs()
	for b.Loop() {
		from.CopyTo(td)
	}
}
