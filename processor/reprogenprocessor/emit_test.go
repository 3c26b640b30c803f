package reprogenprocessor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
)

// emitted returns the records of artifacts that a pipeline got.
func emitted(sink *consumertest.LogsSink) (records []plog.LogRecord) {
	for _, ld := range sink.AllLogs() {
		if r := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0); r.EventName() == "repro.artifact" {
			records = append(records, r)
		}
	}
	return records
}

func TestEmitLog(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.EmitLog = true
	w := newWorld(t, cfg)
	c := mean()
	c.message = "password=hunter2hunter2"
	w.span(c)
	w.pass(10 * time.Second)
	records := emitted(&w.records)
	require.Len(t, records, 1)
	artifact := onlyArtifact(t, cfg)
	r := records[0]
	assert.Equal(t, "00000000000000000000000000000001", r.TraceID().String())
	assert.Equal(t, "0000000000000001", r.SpanID().String())
	group := filepath.Base(filepath.Dir(artifact))
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"repro.artifact.fingerprint": group,
		"repro.artifact.path":        group + "/" + filepath.Base(artifact),
		"repro.artifact.directory":   filepath.Dir(filepath.Dir(artifact)),
		"repro.artifact.kind":        "python_call",
		"host.name":                  host,
		"error.type":                 "statistics.StatisticsError",
	}, r.Attributes().AsRaw())
	assert.Equal(t, map[string]any{
		"repro.py": text(t, artifact, "repro.py"), "trace.json": text(t, artifact, "trace.json"), "report.md": text(t, artifact, "report.md"),
	}, r.Body().AsRaw())
	assert.NotContains(t, r.Body().AsString(), "hunter2")
	service, _ := w.records.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get("service.name")
	assert.Equal(t, "worker", service.Str())
}

// A record goes to the gateway that the failed span goes to.
func TestEmittedRecordHasTheRouteOfItsSpan(t *testing.T) {
	cfg := testConfig(t)
	cfg.EmitLog = true
	w := newWorld(t, cfg)
	c := mean()
	td := c.traces()
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.route", "run-7")
	w.send(td)
	w.pass(0)
	require.Len(t, emitted(&w.records), 1)
	route, _ := w.records.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get("ml.route")
	assert.Equal(t, "run-7", route.Str())
	assert.Equal(t, []string{"run-7"}, client.FromContext(w.records.Contexts()[0]).Metadata.Get("ml-route"))
}

func TestEmitLogIsCapped(t *testing.T) {
	cfg := testConfig(t)
	cfg.EmitLog = true
	w := newWorld(t, cfg)
	c := mean()
	c.payload = call("json", "dumps", `["`+strings.Repeat("x", 250<<10)+`"]`, "{}")
	w.span(c)
	w.pass(0)
	records := emitted(&w.records)
	require.Len(t, records, 1)
	omitted, ok := records[0].Attributes().Get("repro.artifact.omitted")
	require.True(t, ok)
	assert.Contains(t, omitted.Slice().AsRaw(), "repro.py")
	body := records[0].Body().Map()
	_, has := body.Get("trace.json")
	assert.True(t, has, "what fits is there")
	assert.Less(t, len(records[0].Body().AsString()), 300<<10)
}

// TestEmitLogIsOptIn: without emit_log a logs pipeline gets its own records
// and nothing else.
func TestEmitLogIsOptIn(t *testing.T) {
	w := newWorld(t, testConfig(t))
	w.span(mean())
	w.pass(0)
	assert.Len(t, artifacts(t, w.cfg), 1)
	assert.Zero(t, w.records.LogRecordCount())
}

// TestEmitLogAtShutdown: the logs pipeline goes first, and what waits is sent
// before it is gone; afterwards nothing is sent there.
func TestEmitLogAtShutdown(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.EmitLog = true
	w := newWorld(t, cfg)
	w.span(mean())
	require.NoError(t, w.logs.Shutdown(t.Context()))
	assert.Len(t, emitted(&w.records), 1)
	w.span(unlike(3))
	require.NoError(t, w.traces.Shutdown(t.Context()))
	require.NoError(t, w.metrics.Shutdown(t.Context()))
	assert.Len(t, emitted(&w.records), 1)
	assert.Len(t, artifacts(t, cfg), 2)
	assert.Equal(t, map[string]int64{"emit_error": 1}, dropped(t, w.tel))
}

// TestEmitLogAtShutdownWithMoreToCome: a traces pipeline that still runs does
// not keep the logs pipeline for as long as its failures wait.
func TestEmitLogAtShutdownWithMoreToCome(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.EmitLog = true
	w := newWorld(t, cfg)
	w.span(mean())
	// While the record of the first one is sent, a second one comes.
	late := &during{do: sync.OnceFunc(func() { w.span(unlike(3)) })}
	r := w.traces.Shared
	r.writer.outlets.Remove(t.Context(), &w.records)
	r.writer.outlets.Add(late)
	r.finishFor(t.Context(), late)
	assert.Len(t, emitted(&late.LogsSink), 2)
}

// during is a pipeline in which something happens while it consumes.
type during struct {
	consumertest.LogsSink
	do func()
}

func (d *during) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	d.do()
	return d.LogsSink.ConsumeLogs(ctx, ld)
}

// stuck is a pipeline that never comes back, and asks nobody how long it may
// take, until it is freed.
type stuck struct {
	consumertest.LogsSink
	entered, free chan struct{}
}

func (s *stuck) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	s.entered <- struct{}{}
	<-s.free
	return s.LogsSink.ConsumeLogs(ctx, ld)
}

// TestEmitLogIntoAPipelineThatHangs: a pipeline that does not come back holds
// up neither its own end, past the deadline, nor telemetry.
func TestEmitLogIntoAPipelineThatHangs(t *testing.T) {
	cfg := testConfig(t)
	cfg.EmitLog = true
	w := newWorld(t, cfg)
	hangs := &stuck{entered: make(chan struct{}, 8), free: make(chan struct{})}
	defer close(hangs.free)
	r := w.traces.Shared
	r.writer.outlets.Remove(t.Context(), &w.records)
	r.writer.outlets.Add(hangs)
	w.span(mean())
	<-hangs.entered
	ended, end := context.WithCancel(t.Context())
	end()
	r.writer.outlets.Remove(ended, hangs) // comes back, because its time is over
	w.span(unlike(3))
	assert.Equal(t, 2, w.spans.SpanCount())
}

// refusing is a pipeline that takes nothing.
type refusing struct{ consumertest.LogsSink }

func (*refusing) ConsumeLogs(context.Context, plog.Logs) error { return errors.New("queue is full") }

func TestEmitLogRefused(t *testing.T) {
	cfg := testConfig(t)
	cfg.EmitLog = true
	w := newWorld(t, cfg)
	w.traces.Shared.writer.outlets.Remove(t.Context(), &w.records)
	w.traces.Shared.writer.outlets.Add(&refusing{})
	w.span(mean())
	w.pass(0)
	assert.Len(t, artifacts(t, cfg), 1, "the file is there all the same")
	assert.Equal(t, map[string]int64{"emit_error": 1}, dropped(t, w.tel))
}
