package withhold_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
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

func TestWhatIsKeptCostsNoAllocation(t *testing.T) {
	f, td := withhold.New(&withhold.Config{}), clean(100)
	assert.Zero(t, f.Traces(td))
	// What iterating costs is per batch: the resource, the scope and their parts.
	assert.Less(t, testing.AllocsPerRun(20, func() { f.Traces(td) }), 10.0)
}

func BenchmarkKept(b *testing.B) {
	f, td := withhold.New(&withhold.Config{}), clean(100)
	b.ReportAllocs()
	for b.Loop() {
		f.Traces(td)
	}
}

func BenchmarkReplaced(b *testing.B) {
	f, from := withhold.New(&withhold.Config{}), clean(100)
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
