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
