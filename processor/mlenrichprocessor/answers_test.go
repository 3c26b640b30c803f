package mlenrichprocessor

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadatatest"
)

// answered is a span that reports an answer's tokens by its id.
func answered(id string) map[string]any {
	return map[string]any{"gen_ai.usage.output_tokens": 5, "gen_ai.response.id": id}
}

// TestEqualAnswersAreRequests shows that a response id alone joins no requests: a
// mock, a cache and servers with few ids state one for many. They may be in one
// trace, and run at the same time.
func TestEqualAnswersAreRequests(t *testing.T) {
	spans := []testSpan{{7, 1, 0, "agent", nil}, {7, 2, 1, "first", answered("r")}, {7, 3, 1, "failed", nil}, {8, 1, 0, "alone", answered("r")}}
	for i := range byte(101) {
		spans = append(spans, testSpan{7, 10 + i, 1, "again", answered("r")})
	}
	p := startDefault(t)
	assert.Empty(t, keysByName(p.sendTraces(t, scoped("client", batchOf("assistant", spans...))), "ml.usage.counted"))
	alone := startDefault(t)
	for _, span := range spans {
		assert.Empty(t, keysByName(alone.sendTraces(t, scoped("client", batchOf("assistant", span))), "ml.usage.counted"))
	}
	metadatatest.AssertEqualProcessorMlEnrichRequestsJoined(t, p.telemetry, joined(0, 0), metricdatatest.IgnoreTimestamp())
	assert.Empty(t, p.host.State().Notices()[metadata.Type.String()])
}

// scoped gives spans an instrumentation scope.
func scoped(name string, td ptrace.Traces) ptrace.Traces {
	td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName(name)
	return td
}

// joined is the counter of joined requests.
func joined(byID, byTimes int64) []metricdata.DataPoint[int64] {
	id := attribute.String("processor", metadata.Type.String())
	return []metricdata.DataPoint[int64]{
		{Value: byID, Attributes: attribute.NewSet(id, attribute.String("reason", "response_id"))},
		{Value: byTimes, Attributes: attribute.NewSet(id, attribute.String("reason", "times"))},
	}
}

// TestOneAnswerOfTwoInstrumentations shows that two scopes with one response id at
// the same time are one request, also where they disagree about model and tokens, and
// that nothing less is.
func TestOneAnswerOfTwoInstrumentations(t *testing.T) {
	other := func(r *seenRequest) { r.id, r.model, r.output = "a-1", "n", 13 }
	for name, tt := range map[string]struct {
		change func(*seenRequest)
		want   map[string]int
	}{
		"one request":       {func(*seenRequest) {}, map[string]int{"framework": 1}},
		"overlapping only":  {func(r *seenRequest) { r.start, r.end = 50, 200 }, map[string]int{"framework": 1}},
		"no process":        {func(r *seenRequest) { r.process = "" }, map[string]int{"framework": 1}},
		"another process":   {func(r *seenRequest) { r.process = "q" }, map[string]int{}},
		"the same scope":    {func(r *seenRequest) { r.scope = "client" }, map[string]int{}},
		"one after another": {func(r *seenRequest) { r.start, r.end = 200, 300 }, map[string]int{}},
		"another answer":    {func(r *seenRequest) { r.id = "a-2" }, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			second := framework.but(other).but(tt.change)
			for _, together := range []bool{true, false} {
				assert.Equal(t, tt.want, repeatsBy(t, "response_id", together, sdkCall, second))
			}
		})
	}
}

// TestEqualAnswersOfTwoInstrumentations has two instrumentations report a hundred
// requests with one response id: each request counts once.
func TestEqualAnswersOfTwoInstrumentations(t *testing.T) {
	const n = 100
	for name, apart := range map[string]int{"one after another": 150, "seven at a time": 15} {
		t.Run(name, func(t *testing.T) {
			var all []seenRequest
			for i := range n {
				later := func(r *seenRequest) {
					r.start, r.end, r.id, r.output = r.start+i*apart, r.end+i*apart, "a-1", r.output+int64(i)
				}
				all = append(all, sdkCall.but(later), framework.but(later).but(func(r *seenRequest) { r.output += n }))
			}
			assert.Equal(t, map[string]int{"framework": n}, repeatsBy(t, "response_id", false, all...))
			assert.Equal(t, map[string]int{"framework": n}, repeatsBy(t, "response_id", true, all...))
		})
	}
}

// TestJoinedRequestsAreCounted shows that what does not count is counted by the
// reason, and told as a notice.
func TestJoinedRequestsAreCounted(t *testing.T) {
	p := startDefault(t)
	td := ptrace.NewTraces()
	for i, r := range []seenRequest{
		sdkCall, framework.but(func(r *seenRequest) { r.id, r.output = "a-1", 13 }),
		sdkCall.but(func(r *seenRequest) { r.id, r.start, r.end = "", 1000, 1100 }), framework.but(func(r *seenRequest) { r.start, r.end = 1000, 1100 }),
		sdkCall.but(func(r *seenRequest) { r.id, r.start, r.end = "", 2000, 2100 }), framework.but(func(r *seenRequest) { r.start, r.end = 2000, 2100 }),
	} {
		r.addTo(td, i)
	}
	for range 2 {
		p.sendTraces(t, td) // what is delivered again is joined already
		metadatatest.AssertEqualProcessorMlEnrichRequestsJoined(t, p.telemetry, joined(1, 2), metricdatatest.IgnoreTimestamp())
	}
	counts := map[string]int64{}
	for _, notice := range p.host.State().Notices()[metadata.Type.String()] {
		counts[notice.Key] = notice.Count
	}
	assert.Equal(t, map[string]int64{"joined by id framework": 1, "joined by times framework": 2}, counts)
}

// TestADeliveryRepeated shows that a span that arrives twice is no second
// answer: it is the same one, and a back end that keeps the newer of the two
// must not lose its tokens. Who counts spans knows each by its id.
func TestADeliveryRepeated(t *testing.T) {
	p := startDefault(t)
	in := batchOf("assistant", testSpan{7, 1, 0, "agent", nil}, testSpan{7, 2, 1, "first", answered("resp-1")})
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
