package mlenrichprocessor

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	used = map[string]any{"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 5}
	// twice is an agent that adds up, a step that says nothing, and a call that
	// two instrumentations watch.
	twice = []testSpan{
		{7, 1, 0, "agent", used},
		{7, 2, 1, "step", nil},
		{7, 3, 2, "outer", used},
		{7, 4, 3, "inner", used},
		{7, 5, 2, "alone", used},
		{7, 6, 2, "chat without usage", map[string]any{"gen_ai.operation.name": "chat"}},
	}
	notCounted = map[string]string{"agent": "false", "outer": "false"}
)

func TestUsageInABatchInAnyOrder(t *testing.T) {
	for seed := range uint64(50) {
		out := startDefault(t).sendTraces(t, batchOf("assistant", shuffled(seed, twice)...))
		assert.Equal(t, notCounted, keysByName(out, "ml.usage.counted"), "seed %d", seed)
	}
}

// TestUsageOfEarlierBatches sends each span alone, leaves first, as they end.
func TestUsageOfEarlierBatches(t *testing.T) {
	p := startDefault(t)
	got := make(map[string]string)
	for _, i := range []int{5, 4, 3, 2, 1, 0} {
		maps.Copy(got, keysByName(p.sendTraces(t, batchOf("assistant", twice[i])), "ml.usage.counted"))
	}
	assert.Equal(t, notCounted, got)
}

// TestUsageWithinATool has a request that lasts while a tool runs that its answer asked for.
// What the tool asks is another request, and an agent above adds up both.
func TestUsageWithinATool(t *testing.T) {
	asks := func(input int) map[string]any {
		return map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": input}
	}
	spans := []testSpan{
		{7, 1, 0, "agent", map[string]any{"gen_ai.usage.input_tokens": 8}},
		{7, 2, 1, "asks for a tool", asks(3)},
		{7, 3, 2, "tool", map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "expert"}},
		{7, 4, 3, "invoke_agent expert", map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 5}},
		{7, 5, 4, "asks in the tool", asks(5)},
	}
	want := map[string]string{"agent": "false", "invoke_agent expert": "false"}
	for seed := range uint64(20) {
		assert.Equal(t, want, keysByName(startDefault(t).sendTraces(t, batchOf("assistant", shuffled(seed, spans)...)), "ml.usage.counted"), "seed %d", seed)
	}
	p, got := startDefault(t), make(map[string]string)
	for i := range spans {
		maps.Copy(got, keysByName(p.sendTraces(t, batchOf("assistant", spans[len(spans)-1-i])), "ml.usage.counted"))
	}
	assert.Equal(t, want, got, "each alone, as they end")
}

// TestAttemptsThatFailed has requests whose client swallowed the failure of which the client
// of HTTP below tells.
func TestAttemptsThatFailed(t *testing.T) {
	chat := func(more map[string]any) map[string]any {
		attrs := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
		maps.Copy(attrs, more)
		return attrs
	}
	post := func(status int) map[string]any {
		return map[string]any{"url.full": "http://a/v1/chat/completions", "http.response.status_code": status}
	}
	old := map[string]any{"http.url": "http://a/v1/chat/completions", "http.status_code": 429}
	tool := map[string]any{"gen_ai.operation.name": "execute_tool"}
	for name, tt := range map[string]struct {
		spans []testSpan // the last one ends first
		want  map[string]string
	}{
		"failed":             {[]testSpan{{7, 1, 0, "chat", chat(nil)}, {7, 2, 1, "POST", post(500)}}, map[string]string{"chat": "500"}},
		"by the older names": {[]testSpan{{7, 1, 0, "chat", chat(nil)}, {7, 2, 1, "POST", old}}, map[string]string{"chat": "429"}},
		"within a step":      {[]testSpan{{7, 1, 0, "chat", chat(nil)}, {7, 2, 1, "send", nil}, {7, 3, 2, "POST", post(404)}}, map[string]string{"chat": "404"}},
		"asked again":        {[]testSpan{{7, 1, 0, "chat", chat(nil)}, {7, 2, 1, "POST", post(200)}, {7, 3, 1, "POST", post(429)}}, map[string]string{}},
		"answered":           {[]testSpan{{7, 1, 0, "chat", chat(map[string]any{"gen_ai.usage.output_tokens": 5})}, {7, 2, 1, "POST", post(500)}}, map[string]string{}},
		"with an id":         {[]testSpan{{7, 1, 0, "chat", chat(map[string]any{"gen_ai.response.id": "r"})}, {7, 2, 1, "POST", post(500)}}, map[string]string{}},
		"with a reason":      {[]testSpan{{7, 1, 0, "chat", chat(map[string]any{"gen_ai.response.finish_reasons": []any{"stop"}})}, {7, 2, 1, "POST", post(500)}}, map[string]string{}},
		"has its own class":  {[]testSpan{{7, 1, 0, "chat", chat(map[string]any{"error.type": "E"})}, {7, 2, 1, "POST", post(500)}}, map[string]string{"chat": "E"}},
		"of a tool's":        {[]testSpan{{7, 1, 0, "chat", chat(nil)}, {7, 2, 1, "tool", tool}, {7, 3, 2, "POST", post(500)}}, map[string]string{}},
		"no request":         {[]testSpan{{7, 1, 0, "step", nil}, {7, 2, 1, "POST", post(500)}}, map[string]string{}},
		"another's request":  {[]testSpan{{7, 1, 0, "outer", chat(nil)}, {7, 2, 1, "inner", chat(nil)}, {7, 3, 2, "POST", post(500)}}, map[string]string{"inner": "500"}},
		"no status":          {[]testSpan{{7, 1, 0, "chat", chat(nil)}, {7, 2, 1, "POST", post(0)}}, map[string]string{}},
		"one of a model": {[]testSpan{{7, 1, 0, "chat", chat(nil)}, {7, 2, 1, "POST",
			map[string]any{"url.full": "http://a/search", "http.response.status_code": 500}}}, map[string]string{}},
		"another service's": {[]testSpan{{7, 2, 1, "POST", post(500)}}, map[string]string{}},
	} {
		send := func(p *pipelines, spans ...testSpan) map[string]string {
			td := batchOf("assistant", spans...)
			for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
				if span.Name() == "POST" {
					span.SetKind(ptrace.SpanKindClient)
				}
			}
			out := keysByName(p.sendTraces(t, td), "error.type")
			delete(out, "POST")
			return out
		}
		assert.Equal(t, tt.want, send(startDefault(t), tt.spans...), name)
		p, got := startDefault(t), make(map[string]string)
		for i := range tt.spans {
			maps.Copy(got, send(p, tt.spans[len(tt.spans)-1-i]))
		}
		assert.Equal(t, tt.want, got, "%s, each alone, as they end", name)
	}
}

// TestFailureAboveAttempts shows that the agent above a request that failed so does not fail
// once more, and that one above a request that was answered at last does.
func TestFailureAboveAttempts(t *testing.T) {
	post := func(status int) map[string]any {
		return map[string]any{"url.full": "http://a/v1/chat/completions", "http.response.status_code": status}
	}
	for _, tt := range []struct {
		last int
		want map[string]string
	}{{500, map[string]string{"agent": "false"}}, {200, map[string]string{}}} {
		td := batchOf("assistant", testSpan{7, 1, 0, "agent", map[string]any{"gen_ai.operation.name": "invoke_agent", "error.type": "E"}},
			testSpan{7, 2, 1, "chat", map[string]any{"gen_ai.operation.name": "chat"}}, testSpan{7, 3, 2, "POST", post(429)}, testSpan{7, 4, 2, "POST", post(tt.last)})
		for i := range 2 {
			td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(2 + i).SetKind(ptrace.SpanKindClient)
		}
		assert.Equal(t, tt.want, keysByName(startDefault(t).sendTraces(t, td), "ml.error.counted"))
	}
}

// TestCachesAreLearnt shows that the tokens of caches are added to the input of the requests
// of an instrumentation, provider and model once one had more of them than input.
func TestCachesAreLearnt(t *testing.T) {
	learns := startDefault(t)
	ask := func(scope, provider, model string, input, cached, total int, stated ...int) map[string]string {
		attrs := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model,
			"gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": 1, "gen_ai.usage.cache_read.input_tokens": cached}
		if total > 0 {
			attrs["gen_ai.usage.total_tokens"] = total
		}
		for _, whole := range stated {
			attrs["ml.usage.input_tokens"] = whole
		}
		td := batchOf("assistant", testSpan{byte(input), byte(cached), 0, scope, attrs})
		td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName(scope)
		return keysByName(learns.sendTraces(t, td), "ml.usage.input_tokens")
	}
	assert.Empty(t, ask("s", "anthropic", "m", 10, 3, 0), "they may be inside")
	assert.Equal(t, map[string]string{"s": "41"}, ask("s", "anthropic", "m", 11, 30, 0), "they are not")
	assert.Equal(t, map[string]string{"s": "15"}, ask("s", "anthropic", "m", 12, 3, 0), "learnt")
	assert.Equal(t, map[string]string{"s": "16"}, ask("s", "anthropic", "m", 13, 3, 14), "whose total is without them")
	assert.Equal(t, map[string]string{"s": "17"}, ask("s", "anthropic", "m", 14, 3, 18), "whose total is with them")
	assert.Equal(t, map[string]string{"s": "99"}, ask("s", "anthropic", "m", 16, 3, 0, 99), "that states it itself")
	for _, other := range [][3]string{{"t", "anthropic", "m"}, {"s", "openai", "m"}, {"s", "anthropic", "n"}} {
		assert.Empty(t, ask(other[0], other[1], other[2], 15, 3, 0), "learnt of nothing else: %v", other)
	}
}

// TestUsageOfAnotherService shows that a client and the server that it asks
// both count, whether they arrive together or not.
func TestUsageOfAnotherService(t *testing.T) {
	client := batchOf("client", testSpan{7, 1, 0, "chat", used})
	server := batchOf("server", testSpan{7, 2, 1, "llm_request", used})
	p := startDefault(t)
	assert.Empty(t, keysByName(p.sendTraces(t, server), "ml.usage.counted"))
	assert.Empty(t, keysByName(p.sendTraces(t, client), "ml.usage.counted"))

	server.ResourceSpans().At(0).CopyTo(client.ResourceSpans().AppendEmpty())
	assert.Empty(t, keysByName(startDefault(t).sendTraces(t, client), "ml.usage.counted"))
}

func TestUsageThatIsNone(t *testing.T) {
	for name, child := range map[string]map[string]any{
		"no tokens":    {"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0},
		"a bad number": {"gen_ai.usage.input_tokens": -1},
	} {
		out := startDefault(t).sendTraces(t, batchOf("assistant",
			testSpan{7, 1, 0, "outer", used}, testSpan{7, 2, 1, "inner", child}))
		assert.Empty(t, keysByName(out, "ml.usage.counted"), name)
	}
}

// TestEstimatedUsage shows that what a role of TaskWeaver counted of its own
// request is no part of what the role above it counted, but the same as what
// an instrumentation below it reports.
func TestEstimatedUsage(t *testing.T) {
	sizes := map[string]any{"prompt_size": 3, "output_size": 5}
	planner, compressor := testSpan{7, 1, 0, "Planner.reply", sizes}, testSpan{7, 2, 1, "RoundCompressor._summarize", sizes}
	out := startDefault(t).sendTraces(t, batchOf("taskweaver", planner, compressor))
	assert.Empty(t, keysByName(out, "ml.usage.counted"))
	out = startDefault(t).sendTraces(t, batchOf("taskweaver", planner, compressor, testSpan{7, 3, 2, "chat", used}, testSpan{7, 4, 1, "chat", used}))
	assert.Equal(t, map[string]string{"Planner.reply": "false", "RoundCompressor._summarize": "false"}, keysByName(out, "ml.usage.counted"))
}

// TestUsageKeepsAMark shows that nobody else's mark is replaced, and that a
// span which is its own parent still counts.
func TestUsageKeepsAMark(t *testing.T) {
	marked := map[string]any{"gen_ai.usage.output_tokens": 5, "ml.usage.counted": true}
	out := startDefault(t).sendTraces(t, batchOf("assistant",
		testSpan{7, 1, 0, "outer", marked}, testSpan{7, 2, 1, "inner", used}, testSpan{7, 3, 3, "own parent", used}))
	assert.Equal(t, map[string]string{"outer": "true"}, keysByName(out, "ml.usage.counted"))
}

// TestUsageWithoutATrace sends what broken clients do: they would all be of one
// trace.
func TestUsageWithoutATrace(t *testing.T) {
	td := batchOf("assistant", testSpan{7, 1, 0, "outer", used}, testSpan{7, 2, 1, "inner", used})
	for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		span.SetTraceID(pcommon.TraceID{})
	}
	p := startDefault(t)
	for range 2 {
		assert.Empty(t, keysByName(p.sendTraces(t, td), "ml.usage.counted"))
	}
	assert.Empty(t, keysByName(p.sendTraces(t, ptrace.NewTraces()), "ml.usage.counted"))
}
