package reprogenprocessor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
)

const stackOfMean = "Traceback (most recent call last):\n  File \"/srv/app/train.py\", line 3, in step\n    mean([])\n" +
	"statistics.StatisticsError: mean requires at least one data point\n"

// withoutException is a failed span of a client that sends its exceptions as
// logs.
func withoutException() failedCall {
	c := mean()
	c.attrs = map[string]any{"error.type": c.errorType}
	c.errorType, c.message = "", ""
	return c
}

func logged() failedCall {
	c := mean()
	c.payload, c.stack = "", stackOfMean
	return c
}

// TestExceptionInALog: whichever comes first, the record and the span are one
// failure, and both lead to its artifact.
func TestExceptionInALog(t *testing.T) {
	for name, send := range map[string]func(w *world) (span, record pcommon.Map){
		"the record first": func(w *world) (span, record pcommon.Map) {
			record = w.record(logged(), plog.SeverityNumberError).Attributes()
			return w.span(withoutException()).Attributes(), record
		},
		"the span first": func(w *world) (span, record pcommon.Map) {
			span = w.span(withoutException()).Attributes()
			return span, w.record(logged(), plog.SeverityNumberError).Attributes()
		},
		"the record twice, as TuFT's": func(w *world) (span, record pcommon.Map) {
			record = w.record(logged(), plog.SeverityNumberError).Attributes()
			w.record(logged(), plog.SeverityNumberError)
			return w.span(withoutException()).Attributes(), record
		},
		"a span that tells it too": func(w *world) (span, record pcommon.Map) {
			record = w.record(logged(), plog.SeverityNumberError).Attributes()
			return w.span(mean()).Attributes(), record
		},
		"ids as attributes": func(w *world) (span, record pcommon.Map) {
			ld := logged().logs(plog.SeverityNumberError)
			r := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
			r.Attributes().PutStr("otelTraceID", "00000000000000000000000000000001")
			r.Attributes().PutStr("otelSpanID", "0000000000000001")
			r.SetTraceID(pcommon.TraceID{})
			r.SetSpanID(pcommon.SpanID{})
			require.NoError(w.t, w.logs.ConsumeLogs(w.t.Context(), ld))
			return w.span(withoutException()).Attributes(), r.Attributes()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			span, record := send(w)
			assert.Empty(t, artifacts(t, w.cfg), "it waits for the rest")
			w.pass(10 * time.Second)
			artifact := onlyArtifact(t, w.cfg)
			assert.Equal(t, filepath.Dir(artifact), w.leadsTo(span))
			assert.Equal(t, filepath.Dir(artifact), w.leadsTo(record))
			g := groups(t, w.cfg)
			require.Len(t, g, 1)
			assert.EqualValues(t, 1, g[0].Count)
			assert.Equal(t, "python_call", g[0].Kind)
			script := text(t, artifact, "repro.py")
			assert.Contains(t, script, `"type": "statistics.StatisticsError"`)
			assert.Contains(t, script, `"message": "mean requires at least one data point"`)
			assert.Contains(t, script, `"module": "app/train"`, "the frames are the record's")
		})
	}
}

// TestExceptionWithoutASpan: a record alone is a failure, if it is an error.
func TestExceptionWithoutASpan(t *testing.T) {
	for name, tc := range map[string]struct {
		severity plog.SeverityNumber
		change   func(plog.LogRecord)
		want     int
	}{
		"an error":            {severity: plog.SeverityNumberError, want: 1},
		"fatal":               {severity: plog.SeverityNumberFatal, want: 1},
		"no severity":         {want: 1},
		"a warning":           {severity: plog.SeverityNumberWarn},
		"a warning that says": {plog.SeverityNumberWarn, func(r plog.LogRecord) { r.Attributes().PutStr("repro.trigger", "oom") }, 1},
		"no ids": {plog.SeverityNumberError, func(r plog.LogRecord) {
			r.SetTraceID(pcommon.TraceID{})
			r.SetSpanID(pcommon.SpanID{})
		}, 1},
		"no exception": {plog.SeverityNumberError, func(r plog.LogRecord) { r.Attributes().Clear() }, 0},
		"a loader's end": {plog.SeverityNumberError, func(r plog.LogRecord) {
			r.SetEventName("dataloader.next")
			r.Attributes().PutStr("exception.type", "StopIteration")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			ld := logged().logs(tc.severity)
			if tc.change != nil {
				tc.change(ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0))
			}
			require.NoError(t, w.logs.ConsumeLogs(t.Context(), ld))
			w.pass(10 * time.Second)
			assert.Equal(t, 1, w.records.LogRecordCount())
			found := artifacts(t, w.cfg)
			require.Len(t, found, tc.want)
			if tc.want > 0 {
				trace := readTrace(t, found[0])
				assert.Equal(t, "Log", trace.Span.Kind)
				assert.Equal(t, "app.train", trace.Span.Name)
			}
		})
	}
}

// TestWarningCompletesASpan: an exception that was logged as a warning is no
// failure of its own, but that of a span which failed all the same.
func TestWarningCompletesASpan(t *testing.T) {
	for name, send := range map[string]func(w *world){
		"before": func(w *world) {
			w.record(logged(), plog.SeverityNumberWarn)
			w.span(withoutException())
		},
		"after": func(w *world) {
			w.span(withoutException())
			w.record(logged(), plog.SeverityNumberWarn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			send(w)
			w.pass(10 * time.Second)
			assert.Contains(t, text(t, onlyArtifact(t, w.cfg), "repro.py"), `"module": "app/train"`)
		})
	}
}

// TestLoggedExceptionOfAnUnsetSpan: the program logged an exception and went
// on; the span has the call and the place in the trace.
func TestLoggedExceptionOfAnUnsetSpan(t *testing.T) {
	w := newWorld(t, waitingConfig(t))
	record := w.record(logged(), plog.SeverityNumberError)
	c := withoutException()
	c.name, c.parent, c.attrs = "step", 9, nil
	span := w.unfailed(c)
	w.pass(10 * time.Second)
	artifact := onlyArtifact(t, w.cfg)
	assert.Equal(t, w.leadsTo(record.Attributes()), w.leadsTo(span.Attributes()))
	trace := readTrace(t, artifact)
	assert.Equal(t, "step", trace.Span.Name)
	assert.False(t, trace.Complete, "it has a parent")
	require.NotEmpty(t, trace.Span.Events)
	assert.Equal(t, stackOfMean, trace.Span.Events[0].Attributes["exception.stacktrace"])
	assert.Equal(t, "python_call", groups(t, w.cfg)[0].Kind)
}

// TestManyRecords: a batch of nothing but exceptions is looked at up to a
// bound, and passed on whole.
func TestManyRecords(t *testing.T) {
	w := newWorld(t, testConfig(t))
	ld := plog.NewLogs()
	for i := range detect.MaxFailures + 5 {
		one := logged()
		one.trace = byte(i)
		one.logs(plog.SeverityNumberError).ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
	}
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), ld))
	assert.Equal(t, detect.MaxFailures+5, w.records.LogRecordCount())
	assert.Equal(t, map[string]int64{"batch_limit": 5}, dropped(t, w.tel))
}
