package mlenrichprocessor

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// answered is a span that reports an answer's tokens by its id.
func answered(id string) map[string]any {
	return map[string]any{"gen_ai.usage.output_tokens": 5, "gen_ai.response.id": id}
}

// retried is a client that asks three times and gets the same answer twice:
// the attempt between failed, without one.
var retried = []testSpan{
	{7, 1, 0, "agent", nil},
	{7, 2, 1, "first", answered("resp-1")},
	{7, 3, 1, "failed", map[string]any{"gen_ai.operation.name": "chat"}},
	{7, 4, 1, "again", answered("resp-1")},
	{7, 5, 1, "other", answered("resp-2")},
}

func TestAnAnswerCountsOnce(t *testing.T) {
	want := map[string]string{"again": "false"}
	for seed := range uint64(20) {
		out := startDefault(t).sendTraces(t, batchOf("assistant", shuffled(seed, retried)...))
		assert.Equal(t, want, keysByName(out, "ml.usage.counted"), "seed %d", seed)
	}
	p := startDefault(t)
	got := make(map[string]string)
	for _, span := range retried {
		maps.Copy(got, keysByName(p.sendTraces(t, batchOf("assistant", span)), "ml.usage.counted"))
	}
	assert.Equal(t, want, got, "each in a batch of its own")
}

// TestADeliveryRepeated shows that a span that arrives twice is no second
// answer: it is the same one, and a back end that keeps the newer of the two
// must not lose its tokens. Who counts spans knows each by its id.
func TestADeliveryRepeated(t *testing.T) {
	p := startDefault(t)
	in := batchOf("assistant", retried[:2]...)
	first := p.sendTraces(t, in)
	again := p.sendTraces(t, in)
	assert.Empty(t, keysByName(first, "ml.usage.counted"))
	assert.Empty(t, keysByName(again, "ml.usage.counted"))
}

// TestAnAnswerOfTwoServices shows that who asked and who answered both count.
func TestAnAnswerOfTwoServices(t *testing.T) {
	p := startDefault(t)
	assert.Empty(t, keysByName(p.sendTraces(t, batchOf("client", testSpan{7, 1, 0, "chat", answered("r")})), "ml.usage.counted"))
	assert.Empty(t, keysByName(p.sendTraces(t, batchOf("server", testSpan{7, 2, 1, "llm_request", answered("r")})), "ml.usage.counted"))
}

// TestAnAnswerAndItsWrapper shows that a wrapper and what is above a count do
// not take the answer from those below.
func TestAnAnswerAndItsWrapper(t *testing.T) {
	spans := []testSpan{
		{7, 1, 0, "invoke_agent", answered("r")},
		{7, 2, 1, "outer", answered("r")},
		{7, 3, 2, "inner", answered("r")},
	}
	want := map[string]string{"invoke_agent": "false", "outer": "false"}
	for seed := range uint64(10) {
		out := startDefault(t).sendTraces(t, batchOf("assistant", shuffled(seed, spans)...))
		assert.Equal(t, want, keysByName(out, "ml.usage.counted"), "seed %d", seed)
	}
}

// TestAnAnswerThatSomebodyMarked shows that a span which does not count does
// not keep others from counting.
func TestAnAnswerThatSomebodyMarked(t *testing.T) {
	marked := answered("r")
	marked["ml.usage.counted"] = false
	out := startDefault(t).sendTraces(t, batchOf("assistant",
		testSpan{7, 1, 0, "marked", marked}, testSpan{7, 2, 0, "counts", answered("r")}))
	assert.Equal(t, map[string]string{"marked": "false"}, keysByName(out, "ml.usage.counted"))
}

// withKind gives the spans of a name a kind.
func withKind(td ptrace.Traces, name string, kind ptrace.SpanKind) ptrace.Traces {
	for _, rs := range td.ResourceSpans().All() {
		for _, span := range rs.ScopeSpans().At(0).Spans().All() {
			if span.Name() == name {
				span.SetKind(kind)
			}
		}
	}
	return td
}

// asked is a client with a call, and a server behind two spans without tokens.
func asked() (client, server ptrace.Traces) {
	client = batchOf("assistant",
		testSpan{7, 1, 0, "agent", used},
		testSpan{7, 2, 1, "chat", used},
		testSpan{7, 3, 2, "POST", nil})
	server = batchOf("vllm",
		testSpan{7, 4, 3, "POST /v1/chat/completions", nil},
		testSpan{7, 5, 4, "llm_request", used})
	return client, withKind(server, "llm_request", ptrace.SpanKindServer)
}

var sides = map[string]string{"chat": "client", "llm_request": "server"}

func TestSidesInABatch(t *testing.T) {
	client, server := asked()
	for name, first := range map[string][2]ptrace.Traces{"client first": {client, server}, "server first": {server, client}} {
		td := ptrace.NewTraces()
		for _, part := range first {
			part.ResourceSpans().At(0).CopyTo(td.ResourceSpans().AppendEmpty())
		}
		out := startDefault(t).sendTraces(t, td)
		assert.Equal(t, sides, keysByName(out, "ml.side"), name)
		assert.Equal(t, map[string]string{"agent": "false"}, keysByName(out, "ml.usage.counted"), name)
	}
}

// TestSidesOfEarlierBatches sends each span alone, as they end.
func TestSidesOfEarlierBatches(t *testing.T) {
	client, server := asked()
	p := startDefault(t)
	got := make(map[string]string)
	for _, part := range []ptrace.Traces{server, client} {
		spans := part.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for i := range spans.Len() {
			one := ptrace.NewTraces()
			part.ResourceSpans().At(0).Resource().CopyTo(one.ResourceSpans().AppendEmpty().Resource())
			spans.At(spans.Len() - 1 - i).CopyTo(one.ResourceSpans().At(0).ScopeSpans().AppendEmpty().Spans().AppendEmpty())
			maps.Copy(got, keysByName(p.sendTraces(t, one), "ml.side"))
		}
	}
	assert.Equal(t, sides, got)
}

func TestSidesThatAreNone(t *testing.T) {
	root := withKind(batchOf("vllm", testSpan{7, 1, 0, "llm_request", used}), "llm_request", ptrace.SpanKindServer)
	assert.Empty(t, keysByName(startDefault(t).sendTraces(t, root), "ml.side"), "nobody above it")

	same := withKind(batchOf("assistant", testSpan{7, 1, 0, "outer", used}, testSpan{7, 2, 1, "inner", used}), "inner", ptrace.SpanKindServer)
	assert.Equal(t, map[string]string{"inner": "server"}, keysByName(startDefault(t).sendTraces(t, same), "ml.side"),
		"a service that asks itself has no client, and counts once")

	said := batchOf("assistant", testSpan{7, 1, 0, "chat", map[string]any{"gen_ai.usage.output_tokens": 5, "ml.side": "mine"}})
	_, server := asked()
	server.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetParentSpanID(pcommon.SpanID{0: 0xb0, 7: 1})
	server.ResourceSpans().At(0).CopyTo(said.ResourceSpans().AppendEmpty())
	assert.Equal(t, map[string]string{"chat": "mine", "llm_request": "server"},
		keysByName(startDefault(t).sendTraces(t, said), "ml.side"), "what is said stays")

	loop := batchOf("assistant", testSpan{7, 1, 2, "a", nil}, testSpan{7, 2, 1, "b", nil}, testSpan{7, 3, 2, "llm_request", used})
	assert.Equal(t, map[string]string{"llm_request": "server"},
		keysByName(startDefault(t).sendTraces(t, withKind(loop, "llm_request", ptrace.SpanKindServer)), "ml.side"), "a circle ends")
}

// TestSideOfASpanWithNothingElseToAdd shows a client's span that says all but
// its side.
func TestSideOfASpanWithNothingElseToAdd(t *testing.T) {
	td := batchOf("assistant", testSpan{7, 1, 0, "chat", map[string]any{"gen_ai.usage.output_tokens": 5, "ml.usage.counted": true,
		"ml.tokens_per_second": 5.0, "ml.throughput.basis": "reported"}})
	server := withKind(batchOf("vllm", testSpan{7, 2, 1, "llm_request", used}), "llm_request", ptrace.SpanKindServer)
	server.ResourceSpans().At(0).CopyTo(td.ResourceSpans().AppendEmpty())
	assert.Equal(t, sides, keysByName(startDefault(t).sendTraces(t, td), "ml.side"))
}
