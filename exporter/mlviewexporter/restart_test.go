package mlviewexporter

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
)

// state returns the page's state as its JSON has it.
func (r *rig) state(t assert.TestingT, test *testing.T) (state api.State) {
	response, body := r.get(test, "/api/v1/state", nil)
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.NoError(t, json.Unmarshal([]byte(body), &state))
	return state
}

// failed returns a span of a version of a service that failed.
func failed(version string) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "support-agent")
	rs.Resource().Attributes().PutStr("service.version", version)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{2})
	span.SetName("call_tool")
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Attributes().PutStr("error.type", "ToolTimeout")
	return td
}

// changed returns ml_metrics' record of another version of the service.
func changed(from, to string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "support-agent")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("ml.change")
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	record.Body().SetStr("version " + to + " (was " + from + ")")
	record.Attributes().PutStr("ml.change.kind", "version")
	record.Attributes().PutStr("ml.change.from", from)
	record.Attributes().PutStr("ml.change.to", to)
	return ld
}

// TestRestart has a page that begins with what the one before it has saved.
func TestRestart(t *testing.T) {
	kept := &memory{}
	extensions := host{storageID: kept}
	r := newRig(t, "interval: 100ms\nstorage: memory", extensions)
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("1.8.1")))
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("1.8.2")))
	require.NoError(t, r.logs.ConsumeLogs(mlattr.WithConcluded(t.Context()), changed("1.8.1", "1.8.2")))
	before := r.state(t, t)
	require.Len(t, before.Failures, 1)
	require.NotEmpty(t, before.Changes)
	r.stop(t)

	r = newRig(t, "storage: memory", extensions)
	after := r.state(t, t)
	assert.Equal(t, before.Changes, after.Changes)
	require.Len(t, after.Failures, 1)
	assert.Equal(t, "ToolTimeout", after.Failures[0].Class)
	assert.Equal(t, int64(2), after.Failures[0].Count)
	r.stop(t)
	assert.Zero(t, kept.open)

	r = newRig(t, "", extensions)
	assert.Empty(t, r.state(t, t).Failures, "without storage the page begins empty")
}

// A directory keeps runs and what goes with them, without an extension. One that cannot
// be used is no reason not to start: the page says so.
func TestStateDirectory(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "state")
	r := newRig(t, "interval: 100ms\nstate_directory: "+directory, nil)
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("1.8.1")))
	require.Len(t, r.state(t, t).Failures, 1)
	lost := func(r *rig) (rows []api.Missing) {
		for _, row := range r.state(t, t).Missing {
			if row.Kind == "storage" {
				rows = append(rows, row)
			}
		}
		return rows
	}
	assert.Empty(t, lost(r))
	r.stop(t)
	r = newRig(t, "state_directory: "+directory, nil)
	assert.Len(t, r.state(t, t).Failures, 1)
	r.stop(t)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	r = newRig(t, "state_directory: "+file, nil)
	require.Len(t, lost(r), 1)
	assert.Contains(t, lost(r)[0].Why, "not a directory")
	assert.Len(t, r.log.FilterMessageSnippet("could not be").All(), 1)
	r.stop(t)

	r = newRig(t, "", nil)
	require.Len(t, lost(r), 1)
	assert.Equal(t, "ml_view: {state_directory: <directory>}", lost(r)[0].Fix)
}

// Reports have arguments and prompts. Who is not known sees them only where somebody has
// said so.
func TestWhoSeesReproductions(t *testing.T) {
	directory := t.TempDir()
	for text, shown := range map[string]bool{
		"endpoint: 127.0.0.1:0":                                                     true,
		"endpoint: 0.0.0.0:0\ninsecure_no_auth: true":                               false,
		"endpoint: 0.0.0.0:0\ninsecure_no_auth: true\ninsecure_reproductions: true": true,
		"endpoint: 0.0.0.0:0\nauth: {authenticator: basicauth}":                     true,
	} {
		cfg, err := load(t, text+"\nreproductions: "+directory)
		require.NoError(t, err)
		assert.Equal(t, shown, cfg.showsReproductions(), text)
	}
	r := newRig(t, "endpoint: 0.0.0.0:0\ninsecure_no_auth: true\nreproductions: "+directory, nil)
	require.NoError(t, r.ConsumeTraces(t.Context(), failed("1")))
	failures := r.state(t, t).Failures
	require.Len(t, failures, 1)
	assert.Contains(t, failures[0].Why, "insecure_reproductions")
}

// TestReproductions has a folder of repro_gen, of which a group cannot be read.
func TestReproductions(t *testing.T) {
	directory := t.TempDir()
	group := filepath.Join(directory, "0123456789abcdef")
	artifact := filepath.Join(group, "20261120T100000Z-0102030405060708090a0b0c0d0e0f10-0102030405060708")
	require.NoError(t, os.MkdirAll(artifact, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(artifact, "repro.py"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(artifact, "report.md"), []byte("# Reproduction of a failure\n"), 0o600))
	summary := filepath.Join(group, "group.json")
	write := func(text string) { require.NoError(t, os.WriteFile(summary, []byte(text), 0o600)) }
	write(`{"kind":"python_call","type":"ValueError","count":7,"last_seen":"2026-11-20T11:00:00Z"}`)
	broken := filepath.Join(directory, "fedcba9876543210")
	require.NoError(t, os.CopyFS(broken, os.DirFS(group)))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "group.json"), []byte("{"), 0o600))

	r := newRig(t, "interval: 100ms\nreproductions: "+directory, nil)
	counts := func(want int64) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			failures := r.state(c, t).Failures
			if assert.Len(c, failures, 2, "a damaged group is shown as far as it can be read") {
				assert.Equal(c, "ValueError", failures[0].Class)
				assert.Equal(c, want, failures[0].Count)
			}
		}, 10*time.Second, 10*time.Millisecond)
	}
	counts(7)
	write(`{"kind":"python_call","type":"ValueError","count":8,"last_seen":"2026-11-20T11:00:01Z"}`)
	counts(8)
	warnings := func() []observer.LoggedEntry { return r.log.FilterMessageSnippet("could not be read").All() }
	require.Len(t, warnings(), 1, "an error is logged once")
	assert.Contains(t, warnings()[0].ContextMap()["error"], "fedcba9876543210")
	require.NoError(t, os.WriteFile(filepath.Join(broken, "group.json"), []byte(`{"count":"many"}`), 0o600))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		r.state(c, t)
		assert.Len(c, warnings(), 2, "another error is logged at once")
	}, 10*time.Second, 10*time.Millisecond)
	readings := func(t require.TestingT) int64 {
		got, err := r.tel.GetMetric("otelcol_exporter_ml_view_reproductions_errors")
		require.NoError(t, err)
		return got.Data.(metricdata.Sum[int64]).DataPoints[0].Value
	}
	assert.NotZero(t, readings(t))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		before := readings(c)
		time.Sleep(500 * time.Millisecond)
		assert.Equal(c, before, readings(c), "without a reader of the page, the directory is read once a minute")
	}, 5*time.Second, 10*time.Millisecond)

	response, body := r.get(t, "/reproductions/0123456789abcdef", nil)
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, "# Reproduction of a failure\n", body)
	for _, unknown := range []string{"0000000000000000", "%2e%2e%2fetc", "0123456789abcdef%2f..%2f..%2fx"} {
		response, _ := r.get(t, "/reproductions/"+unknown, nil)
		assert.NotEqual(t, http.StatusOK, response.StatusCode, unknown)
	}
	r.stop(t)
	r = newRig(t, "", nil)
	response, _ = r.get(t, "/reproductions/0123456789abcdef", nil)
	assert.Equal(t, http.StatusNotFound, response.StatusCode, "reports are shown only if the directory is configured")
}

// TestNoticesOfOtherComponents has a component that reaches a limit and goes away.
func TestNoticesOfOtherComponents(t *testing.T) {
	all := new(statetest.Host)
	r := newRig(t, "interval: 100ms", all.GetExtensions())
	withdraw := all.State().PublishNotices("ml_guard/identities", func() []shared.Notice {
		return []shared.Notice{{Key: "run", Kind: "limit", What: "Runs", Why: "more than 500", Count: 3, Fix: "limits: {run: 1000}"}}
	})
	row := api.Missing{
		Key: "ml_guard/identities:run", Kind: "limit", What: "Runs", Why: "more than 500", Count: 3, Fix: "limits: {run: 1000}",
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, r.state(c, t).Missing, row)
	}, 10*time.Second, 10*time.Millisecond)
	drops := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	end := all.State().PublishNotices("ml_guard/out", func() []shared.Notice {
		return []shared.Notice{{Key: "dropped traces", Kind: "dropped", What: "Drops traces", Since: drops, Count: 7}}
	})
	defer end()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		missing := r.state(c, t).Missing
		assert.Contains(c, missing, row)
		assert.Equal(c, api.Missing{Key: "ml_guard/out:dropped traces", Kind: "dropped", What: "Drops traces", Since: &drops, Count: 7}, missing[0], "what goes on is the first")
	}, 10*time.Second, 10*time.Millisecond)
	withdraw()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NotContains(c, r.state(c, t).Missing, row)
	}, 10*time.Second, 10*time.Millisecond)
}
