package smoke

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// recordOf is a log record of a trace.
func recordOf(trace pcommon.TraceID, body string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "assistant")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetTraceID(trace)
	record.Body().SetStr(body)
	return ld
}

// A log record that is ahead of its span goes on with the span's session as soon
// as that is there. What still waits when the collector ends is sent before.
func TestLogsWaitForTheirSpans(t *testing.T) {
	t.Parallel()
	config, err := filepath.Abs(filepath.Join("testdata", "log-wait.yaml"))
	require.NoError(t, err)
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config:    config,
		Overrides: map[string]any{"exporters::otlp_grpc::endpoint": sink.Endpoint},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })

	require.NoError(t, sender.Logs(t.Context(), recordOf(pcommon.TraceID{1}, "found")))
	require.NoError(t, sender.Logs(t.Context(), recordOf(pcommon.TraceID{2}, "left")))
	waiting := func() float64 {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, harness.TelemetryPath))
		require.NoError(t, err)
		found := harness.Select(samples, "otelcol_processor_ml_enrich_log_records_waiting", nil)
		require.Len(t, found, 1)
		return found[0].Value
	}
	assert.InDelta(t, 2, waiting(), 0)
	assert.Empty(t, sink.LogRecords())

	traces := oneSpan("assistant", "chat", func(attributes pcommon.Map) { attributes.PutStr("session.id", "s-1") })
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID(pcommon.TraceID{1})
	require.NoError(t, sender.Traces(t.Context(), traces))
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Len(c, sink.LogRecords(), 1) }, arrival, poll)
	session, _ := sink.LogRecords()[0].Attributes().Get("ml.session.id")
	assert.Equal(t, "s-1", session.AsString())
	assert.InDelta(t, 1, waiting(), 0)

	stopDropIn(t, collector)
	require.Len(t, sink.LogRecords(), 2, "what waits is sent before the collector ends")
	assert.Equal(t, "left", sink.LogRecords()[1].Body().Str())
	assert.Zero(t, sink.LogRecords()[1].Attributes().Len())
}
