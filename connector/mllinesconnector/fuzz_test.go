package mllinesconnector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

// FuzzLines reads lines of any content. Spans do not end before they start, and a line makes
// no more than the limit.
func FuzzLines(f *testing.F) {
	for _, s := range format.Shipped() {
		for _, e := range s.Examples {
			f.Add(e.Text, "/data/train_rank3.log")
		}
	}
	f.Add(crash, "/var/log/pods/ml_llama-0_u/pytorch/0.log")
	f.Add("[default5]:step", "/logs/x/attempt_1/5/stdout.log")
	f.Fuzz(func(t *testing.T, text, path string) {
		sink := new(consumertest.TracesSink)
		c, err := newLines(connectortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), alone(), sink)
		require.NoError(t, err)
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		c.now = func() time.Time { return at }
		ld := plog.NewLogs()
		records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		lines := strings.Split(text, "\n")
		for _, line := range append(lines, text) {
			record := records.AppendEmpty()
			record.Body().SetStr(line)
			record.SetTimestamp(pcommon.NewTimestampFromTime(at))
			record.Attributes().PutStr("log.file.path", path)
		}
		ld.MarkReadOnly()
		require.NoError(t, c.ConsumeLogs(t.Context(), ld))
		at = at.Add(time.Minute)
		require.NoError(t, c.send(t.Context(), c.look(true)))
		spans := 0
		for _, td := range sink.AllTraces() {
			for _, rs := range td.ResourceSpans().All() {
				for _, span := range rs.ScopeSpans().At(0).Spans().All() {
					spans++
					assert.LessOrEqual(t, span.StartTimestamp(), span.EndTimestamp())
					assert.False(t, span.TraceID().IsEmpty() || span.SpanID().IsEmpty())
				}
			}
		}
		assert.LessOrEqual(t, spans, 2*2020*(2*len(lines)+2*strings.Count(text, "\r")+2*strings.Count(text, "\b")+4))
	})
}

// FuzzConsume reads requests of any content, whose values may be nested.
func FuzzConsume(f *testing.F) {
	message := otlpnest.Maps(500)
	f.Add(otlpnest.Logs([][]byte{otlpnest.Attribute("host.name", message)}, [][]byte{otlpnest.Attribute("log.file.path", message)}, message))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(bytes)
		if err != nil {
			return
		}
		c, err := newLines(connectortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), alone(), consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, c.ConsumeLogs(t.Context(), ld))
		require.NoError(t, (&records{origins: alone(), next: consumertest.NewNop()}).ConsumeLogs(t.Context(), ld))
	})
}
