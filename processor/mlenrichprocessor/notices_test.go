package mlenrichprocessor

import (
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
