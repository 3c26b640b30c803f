package reprogenprocessor

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadatatest"
)

// clock is a collector's clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return c.at
}

// world is a traces, a logs and a metrics pipeline with one repro_gen, whose time a test
// moves.
type world struct {
	t        *testing.T
	cfg      *Config
	clock    *clock
	traces   *instance
	logs     *instance
	metrics  *instance
	spans    consumertest.TracesSink
	records  consumertest.LogsSink
	points   consumertest.MetricsSink
	tel      *componenttest.Telemetry
	host     statetest.Host
	shutdown func()
}

// newWorld starts them; a cfg with a sibling_wait lets failures wait until the
// test moves the time.
func newWorld(t *testing.T, cfg *Config) *world {
	w := &world{t: t, cfg: cfg, clock: &clock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, tel: componenttest.NewTelemetry()}
	set := metadatatest.NewSettings(w.tel)
	recorders := new(shared.Registry[*recorder])
	use := recorders.Use(set.ID, func() (*recorder, error) {
		r, err := newRecorder(cfg, kinds(), set.ID, set.TelemetrySettings)
		if err == nil {
			r.now = w.clock.now
		}
		return r, err
	})
	w.traces = &instance{traces: &w.spans, Use: use}
	w.logs = &instance{logs: &w.records, Use: use}
	w.metrics = &instance{metrics: &w.points, Use: use}
	require.NoError(t, cfg.Validate())
	require.NoError(t, w.metrics.Start(t.Context(), &w.host))
	require.NoError(t, w.traces.Start(t.Context(), &w.host))
	require.NoError(t, w.logs.Start(t.Context(), &w.host))
	w.shutdown = sync.OnceFunc(func() {
		assert.NoError(t, w.logs.Shutdown(context.Background()))
		assert.NoError(t, w.traces.Shutdown(context.Background()))
		assert.NoError(t, w.metrics.Shutdown(context.Background()))
	})
	t.Cleanup(func() { require.NoError(t, w.tel.Shutdown(context.Background())) })
	t.Cleanup(w.shutdown)
	return w
}

// waitingConfig is testConfig with the waiting that users have.
func waitingConfig(t *testing.T, allowed ...string) *Config {
	cfg := testConfig(t, allowed...)
	cfg.SiblingWait = 10 * time.Second
	return cfg
}

// span sends one failed span and returns it as it was passed on.
func (w *world) span(c failedCall) ptrace.Span { return w.send(c.traces()) }

// send sends a batch and returns its first span as it was passed on.
func (w *world) send(td ptrace.Traces) ptrace.Span {
	w.t.Helper()
	require.NoError(w.t, w.traces.ConsumeTraces(w.t.Context(), td))
	all := w.spans.AllTraces()
	return spans(all[len(all)-1])[0]
}

// unfailed sends a span whose status is unset.
func (w *world) unfailed(c failedCall) ptrace.Span {
	w.t.Helper()
	td := c.traces()
	spans(td)[0].Status().SetCode(ptrace.StatusCodeUnset)
	return w.send(td)
}

// record sends an exception's log record and returns it as it was passed on.
func (w *world) record(c failedCall, severity plog.SeverityNumber) plog.LogRecord {
	w.t.Helper()
	ld := c.logs(severity)
	require.NoError(w.t, w.logs.ConsumeLogs(w.t.Context(), ld))
	return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
}

// logs is the log record that tells of the call's exception.
func (c failedCall) logs(severity plog.SeverityNumber) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	service := c.service
	if service == "" {
		service = "worker"
	}
	rl.Resource().Attributes().PutStr("service.name", service)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("app.train")
	record := sl.LogRecords().AppendEmpty()
	record.SetSeverityNumber(severity)
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_700_000_001, 0)))
	record.Body().SetStr("the call failed")
	record.SetTraceID(pcommon.TraceID{15: max(c.trace, 1)})
	record.SetSpanID(pcommon.SpanID{7: max(c.span, 1)})
	record.Attributes().PutStr("exception.type", c.errorType)
	record.Attributes().PutStr("exception.message", c.message)
	record.Attributes().PutStr("exception.stacktrace", c.stack)
	for k, v := range c.attrs {
		if err := record.Attributes().PutEmpty(k).FromRaw(v); err != nil {
			panic(err)
		}
	}
	return ld
}

// pass moves the time and waits until the workers have done what is due.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	r := w.traces.Shared
	r.incidents.Release(w.clock.add(d), false)
	require.Eventually(w.t, func() bool {
		sizes := r.incidents.Sizes()
		return sizes.Reserved == sizes.Waiting && r.writer.working.Load() == 0
	}, 30*time.Second, time.Millisecond)
}

// count returns the value of one of the processor's counters.
func (w *world) count(name string) int64 {
	got, err := w.tel.GetMetric("otelcol_processor_repro_gen_" + name)
	if err != nil {
		return 0 // nothing was counted
	}
	var sum int64
	for _, p := range got.Data.(metricdata.Sum[int64]).DataPoints {
		sum += p.Value
	}
	return sum
}

// traceJSON is a trace.json as a test reads it.
type traceJSON struct {
	Complete, Truncated         bool
	Trigger, Rank               string
	OmittedSpans                int `json:"omitted_spans"`
	Training                    map[string]any
	Span                        spanJSON
	Ancestors, Siblings, Others []spanJSON
	PayloadFrom                 *struct{ Service, Span string } `json:"payload_from"`
}

type spanJSON struct {
	Name, Kind string
	Attributes map[string]any
	Events     []struct{ Attributes map[string]any }
}

func names(spans []spanJSON) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name)
	}
	return names
}

func readTrace(t testing.TB, artifact string) (trace traceJSON) {
	require.NoError(t, json.Unmarshal([]byte(text(t, artifact, "trace.json")), &trace))
	return trace
}

// leadsTo returns the folder that a span or record names.
func (w *world) leadsTo(attributes pcommon.Map) string {
	w.t.Helper()
	path, ok := attributes.Get("repro.artifact.path")
	require.True(w.t, ok, "it leads nowhere: %v", attributes.AsRaw())
	return filepath.Join(w.cfg.Directory, path.Str())
}
