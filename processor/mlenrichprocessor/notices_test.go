package mlenrichprocessor

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// TestNotices has more traces than the store remembers.
func TestNotices(t *testing.T) {
	set, host := processortest.NewNopSettings(metadata.Type), new(statetest.Host)
	traces, err := NewFactory().CreateTraces(t.Context(), set, createDefaultConfig(), new(consumertest.TracesSink))
	require.NoError(t, err)
	require.NoError(t, traces.Start(t.Context(), host))
	id := set.ID.String()
	assert.Empty(t, host.State().Notices()[id])
	for from := uint32(0); from < 70_000; from += 1_000 {
		td := ptrace.NewTraces()
		spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for i := range uint32(1_000) {
			addCall(spans.AppendEmpty(), from+i+1, 0)
		}
		require.NoError(t, traces.ConsumeTraces(t.Context(), td))
	}
	published := host.State().Notices()[id]
	require.NotEmpty(t, published)
	assert.Equal(t, shared.Notice{
		Key: "evicted answers", Kind: "limit", Count: published[0].Count, What: "What telemetry has in common: the index of answers",
		Why: "The index is full, so its oldest entries were removed early.", Fix: "Send a part of the clients to another collector.",
	}, published[0])
	require.NoError(t, traces.Shutdown(t.Context()))
	assert.Empty(t, host.State().Notices()[id])
}

// TestScopesThatDoNotCount names the scopes whose spans look like requests to models, with
// the reason, and not those of which any counts.
func TestScopesThatDoNotCount(t *testing.T) {
	model := map[string]any{"gen_ai.request.model": "m"}
	asks := map[string]any{"gen_ai.request.model": "m", "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
	sums := map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 7}
	p := startDefault(t)
	for _, in := range []struct {
		scope string
		span  testSpan
	}{
		{"client", testSpan{1, 3, 2, "chat m", asks}},
		{"framework", testSpan{1, 2, 1, "model", asks}},
		{"agents", testSpan{1, 1, 0, "planner", sums}},
		{"own", testSpan{2, 1, 0, "planner", sums}},
		{"own", testSpan{2, 2, 1, "chat m", asks}},
		{"", testSpan{3, 1, 0, "ask", model}},
		{"training", testSpan{4, 1, 0, "step", map[string]any{"gen_ai.request.model": "m", "ml.phase": "forward"}}},
		{"web", testSpan{5, 1, 0, "GET /", nil}},
	} {
		p.sendTraces(t, scoped(in.scope, batchOf("assistant", in.span)))
	}
	var told []string
	for _, notice := range p.host.State().Notices()[metadata.Type.String()] {
		told = append(told, notice.What+": "+strconv.FormatInt(notice.Count, 10)+": "+notice.Why)
	}
	const look = "Spans that look like requests to models, and do not count: "
	assert.Equal(t, []string{
		look + "agents: 1: Spans above or below them report the same requests.",
		look + "framework: 1: Spans above or below them report the same requests.",
		look + "no scope: 1: They name a model, and state neither an operation (gen_ai.operation.name) nor tokens.",
	}, slices.Sorted(slices.Values(told)))
}
