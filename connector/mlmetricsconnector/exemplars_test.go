package mlmetricsconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// rated are n requests, each with a rate of its own bucket and with content.
func rated(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := range n {
		span := addSpan(td, "", byte(i+1), uint16(i+1)) // #nosec G115 -- small
		span.Attributes().PutStr("gen_ai.prompt", "a secret")
		span.Attributes().PutInt("gen_ai.usage.output_tokens", 5)
		span.Attributes().PutDouble("ml.tokens_per_second", float64(int(1)<<i))
	}
	return td
}

func exemplarsOf(t *testing.T, td ptrace.Traces) (counter, histogram pmetric.ExemplarSlice) {
	next := new(consumertest.MetricsSink)
	c := start(t, createDefaultConfig().(*Config), next)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))
	md := lastOf(t, next)
	return find(t, md, "ml.tokens").Sum().DataPoints().At(0).Exemplars(),
		find(t, md, "ml.request.token.throughput").Histogram().DataPoints().At(0).Exemplars()
}

func TestExemplarsAreFewAndWithoutContent(t *testing.T) {
	counter, histogram := exemplarsOf(t, rated(10))
	require.Equal(t, 1, counter.Len(), "the newest of a counter")
	assert.Equal(t, pcommon.TraceID{10}, counter.At(0).TraceID())
	assert.InDelta(t, 5, counter.At(0).DoubleValue(), 0)
	require.Equal(t, 4, histogram.Len())
	seen := map[float64]bool{}
	for _, slice := range []pmetric.ExemplarSlice{counter, histogram} {
		for _, e := range slice.All() {
			assert.False(t, e.TraceID().IsEmpty())
			assert.False(t, e.SpanID().IsEmpty())
			assert.NotZero(t, e.Timestamp())
			assert.Zero(t, e.FilteredAttributes().Len(), "nothing of the span but its ids")
			assert.False(t, seen[e.DoubleValue()], "each is of another bucket")
			seen[e.DoubleValue()] = true
		}
	}
}

// A span without a trace is nobody's example.
func TestSpansWithoutATraceAreNoExemplars(t *testing.T) {
	td := rated(1)
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID(pcommon.TraceID{})
	counter, histogram := exemplarsOf(t, td)
	assert.Zero(t, counter.Len()+histogram.Len())
}
