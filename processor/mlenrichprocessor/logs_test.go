package mlenrichprocessor

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// recordOf is a log record of a span of batchOf, which its process wrote.
func recordOf(trace, span byte, attrs map[string]any) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "x")
	rl.Resource().Attributes().PutStr("TORCHELASTIC_RUN_ID", "run-1")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	if trace != 0 {
		record.SetTraceID([16]byte{0: 0xa0, 15: trace})
	}
	if span != 0 {
		record.SetSpanID([8]byte{0: 0xb0, 7: span})
	}
	if err := record.Attributes().FromRaw(attrs); err != nil {
		panic(err)
	}
	return ld
}

func firstRecord(ld plog.Logs) plog.LogRecord {
	return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
}

func TestLogsOfSpans(t *testing.T) {
	const of1, of2 = "a0000000000000000000000000000001", "a0000000000000000000000000000002"
	for name, test := range map[string]struct {
		record plog.Logs
		want   map[string]any // what is added
	}{
		"of a span": {
			recordOf(1, 2, nil),
			map[string]any{"ml.session.id": "s", "ml.request.id": "r", "ml.correlation.source": "session=span,request=span"},
		},
		"of a trace": {
			recordOf(1, 0, nil),
			map[string]any{"ml.session.id": "s", "ml.correlation.source": "session=trace"},
		},
		"by what the logging bridge wrote": {
			recordOf(0, 0, map[string]any{"otelTraceID": of1, "otelSpanID": "b000000000000002"}),
			map[string]any{"ml.session.id": "s", "ml.request.id": "r", "ml.correlation.source": "session=span,request=span"},
		},
		"the record's own id before the bridge's": {
			recordOf(1, 0, map[string]any{"otelTraceID": of2}),
			map[string]any{"ml.session.id": "s", "ml.correlation.source": "session=trace"},
		},
		"with a session of its own": {
			recordOf(1, 0, map[string]any{"ml.session.id": "mine"}),
			map[string]any{},
		},
		"ahead of its spans": {recordOf(3, 1, nil), map[string]any{}},
		"of no trace":        {recordOf(0, 2, nil), map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := startDefault(t)
			p.sendTraces(t, batchOf("x", testSpan{1, 1, 0, "root", keys("s", "")}, testSpan{1, 2, 1, "call", keys("", "r")}))
			p.sendTraces(t, batchOf("x", testSpan{2, 1, 0, "other", keys("other", "")}))
			out := p.sendLogs(t, test.record)
			maps.Copy(test.want, firstRecord(test.record).Attributes().AsRaw())
			assert.Equal(t, test.want, firstRecord(out).Attributes().AsRaw())
			run, _ := out.ResourceLogs().At(0).Resource().Attributes().Get("ml.run.id")
			assert.Equal(t, "run-1", run.AsString(), "what its resource gives is there without any span")
		})
	}
}

// TestReloadForgets shows what the README says: the store lives as long as the
// instances of a component id, and a reload makes new ones.
func TestReloadForgets(t *testing.T) {
	f, set, ctx := NewFactory(), processortest.NewNopSettings(metadata.Type), context.Background()
	session := func(sends bool) any {
		var sink consumertest.LogsSink
		traces, err := f.CreateTraces(ctx, set, createDefaultConfig(), consumertest.NewNop())
		require.NoError(t, err)
		logs, err := f.CreateLogs(ctx, set, createDefaultConfig(), &sink)
		require.NoError(t, err)
		require.NoError(t, traces.Start(ctx, componenttest.NewNopHost()))
		require.NoError(t, logs.Start(ctx, componenttest.NewNopHost()))
		if sends {
			require.NoError(t, traces.ConsumeTraces(ctx, batchOf("x", testSpan{1, 1, 0, "root", keys("s", "")})))
		}
		require.NoError(t, logs.ConsumeLogs(ctx, recordOf(1, 1, nil)))
		require.NoError(t, logs.Shutdown(ctx))
		require.NoError(t, traces.Shutdown(ctx))
		return firstRecord(sink.AllLogs()[0]).Attributes().AsRaw()["ml.session.id"]
	}
	assert.Equal(t, "s", session(true))
	assert.Nil(t, session(false))
	assert.Equal(t, "s", session(true))
}
