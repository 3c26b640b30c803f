package mlmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// What stands for the runs that ml_guard has not admitted is no run: it has
// counts, marked as overflow, and no newest value, state or time.
func TestRunsThatAreNotAdmittedAreNoRun(t *testing.T) {
	td := ptrace.NewTraces()
	end := time.Unix(1_763_000_000, 0)
	for i := range 3 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(mlattr.ServiceName, "trainer")
		rs.Resource().Attributes().PutStr(mlattr.RunID, mlattr.Other)
		rs.Resource().Attributes().PutInt(mlattr.RankGlobal, int64(i))
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte{1, byte(i)})
		span.SetSpanID([8]byte{1})
		span.SetName("SGD.step")
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Second)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
		span.Attributes().PutStr(mlattr.Phase, "optimizer")
		span.Attributes().PutDouble(mlattr.LearningRate, 0.1)
	}
	next := new(consumertest.MetricsSink)
	c := start(t, createDefaultConfig().(*Config), next)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))

	got := map[string]map[string]any{}
	for _, md := range next.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					got[m.Name()] = nil
					if m.Name() == "ml.steps" {
						require.Equal(t, 1, m.Sum().DataPoints().Len())
						got[m.Name()] = m.Sum().DataPoints().At(0).Attributes().AsRaw()
						assert.Equal(t, int64(3), m.Sum().DataPoints().At(0).IntValue())
					}
				}
			}
		}
	}
	assert.Equal(t, map[string]map[string]any{"ml.steps": {mlattr.Overflow: true}}, got)
}
