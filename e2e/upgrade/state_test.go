package upgrade

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	// arrival is how long a busy machine may take to send or to show something.
	arrival = time.Minute
	poll    = 100 * time.Millisecond
	// settled is longer than a version is known before another one is a change.
	settled = 10 * time.Minute
	// deployed is the service whose version changes.
	deployed = "deployed"
	// refusing refuses connections, so that queues keep what they have.
	refusing = "127.0.0.1:1"
)

// TestState reads what a collector wrote before it ended.
func TestState(t *testing.T) {
	t.Parallel()
	folder, in := written(t)
	check(t, folder, in, "")
}

// once is the state that all tests begin with, and what is in it.
var once struct {
	sync.Once
	folder string
	in     contents
}

func TestMain(m *testing.M) {
	code := m.Run()
	if once.folder != "" {
		_ = os.RemoveAll(once.folder)
	}
	os.Exit(code)
}

// written returns a copy of state that a collector wrote a while ago, and what is in it.
func written(t *testing.T) (string, contents) {
	t.Helper()
	once.Do(func() {
		folder, err := os.MkdirTemp("", "state") //nolint:usetesting // it outlives the test that fills it
		require.NoError(t, err)
		once.folder, once.in = folder, fill(t, folder)
	})
	require.NotEmpty(t, once.folder, "another test could not fill it")
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(once.folder)))
	age(t, folder, once.in.written)
	return folder, once.in
}

// The kinds of state.
const (
	queue         = "queue"
	page          = "page"
	changes       = "changes"
	reproductions = "reproductions"
	reports       = "reports"
)

// contents is what a folder with state has.
type contents struct {
	written time.Time
	// spans are the ids of queued spans.
	spans []string
	// runs and failures are what the page shows, runs with their state.
	runs     map[string]string
	failures []string
	// files are those of reproductions and of reports, relative to the folder.
	files []string
}

// state is the part of the page's state that the tests read.
type state struct {
	Runs []struct {
		ID    string `json:"id"`
		State string `json:"state"`
	} `json:"runs"`
	Failures []struct {
		Key     string `json:"key"`
		Command string `json:"command"`
	} `json:"failures"`
}

// start starts a collector with agent.yaml and with its state in a folder.
func start(t *testing.T, folder, backend string) *harness.Collector {
	t.Helper()
	return harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{testdata("state.yaml")},
		Env: []string{
			"STATE_DIR=" + folder,
			"JAEGER_ENDPOINT=" + backend, "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + backend,
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(folder, reproductions),
			"ML_VIEW_REPORTS=" + filepath.Join(folder, reports),
		},
	})
}

func testdata(name string) string { return harness.Path("e2e", "upgrade", "testdata", name) }

// fill has a collector write its state into a folder.
func fill(t *testing.T, folder string) contents {
	t.Helper()
	c := start(t, folder, refusing)
	sent := harness.Generate(t, c, harness.Workload{Seed: 1, JobID: "48101", Scenarios: "torchtel,taskweaver", Duration: 2 * time.Second, Rate: 4, Ranks: 1})
	deploy(t, c, "1")
	in := contents{runs: map[string]string{}}
	in.spans = append(in.spans, spanOf("1").String())
	for _, span := range sent.Spans {
		in.spans = append(in.spans, span.SpanID)
	}
	require.EventuallyWithT(t, func(e *assert.CollectT) {
		shown := read(e, t, c)
		ended := 0
		in.failures = nil
		for _, run := range shown.Runs {
			in.runs[run.ID] = run.State
			if run.State == "ended" {
				ended++
			}
		}
		for _, failure := range shown.Failures {
			if failure.Command != "" {
				in.failures = append(in.failures, failure.Key)
			}
		}
		in.files = append(files(t, filepath.Join(folder, reproductions)), files(t, filepath.Join(folder, reports))...)
		assert.Positive(e, ended)
		assert.NotEmpty(e, in.failures)
		assert.True(e, slices.ContainsFunc(in.files, func(name string) bool { return strings.HasSuffix(name, ".html") }))
		assert.True(e, slices.ContainsFunc(in.files, func(name string) bool { return strings.HasSuffix(name, "repro.py") }))
	}, arrival, poll)
	require.Zero(t, c.Stop(t), "exit code")
	in.written = time.Now().UTC()
	return in
}

// check starts a collector on a folder and expects what the folder has, except for
// the kind of state that is lost.
func check(t *testing.T, folder string, in contents, lost string) *harness.Collector {
	t.Helper()
	backend := harness.StartSink(t)
	c := start(t, folder, backend.Endpoint)
	if lost != queue {
		require.EventuallyWithT(t, func(e *assert.CollectT) {
			arrived := map[string]bool{}
			for _, span := range backend.Spans() {
				arrived[span.SpanID().String()] = true
			}
			missing := slices.DeleteFunc(slices.Clone(in.spans), func(id string) bool { return arrived[id] })
			assert.Empty(e, missing, "queued spans that did not arrive")
		}, arrival, poll)
	}
	require.EventuallyWithT(t, func(e *assert.CollectT) { checkPage(e, read(e, t, c), in, lost) }, arrival, poll)
	deploy(t, c, "1")
	deploy(t, c, "2")
	if lost != changes {
		// Version 1 is known, and so no change.
		require.EventuallyWithT(t, func(e *assert.CollectT) {
			assert.Equal(e, []string{"version 2 (was 1)"}, changesOf(backend))
		}, arrival, poll)
	}
	assert.Zero(t, c.Stop(t), "exit code")
	assert.Empty(t, harness.LogErrors(c.Output()))
	if lost == "" {
		assert.NotContains(t, c.Output(), "A summary cannot be read")
	}
	for _, name := range in.files {
		if lost != reproductions || filepath.Base(name) != "group.json" {
			assert.FileExists(t, filepath.Join(folder, name))
		}
	}
	return c
}

func checkPage(t assert.TestingT, shown state, in contents, lost string) {
	runs, failures := map[string]string{}, map[string]string{}
	for _, run := range shown.Runs {
		runs[run.ID] = run.State
	}
	for _, failure := range shown.Failures {
		failures[failure.Key] = failure.Command
	}
	for id, state := range in.runs {
		if lost != page {
			assert.Equal(t, state, runs[id], "run %s", id)
		}
	}
	for _, key := range in.failures {
		assert.NotEmpty(t, failures[key], "the command that reproduces failure %s", key)
	}
}

func read(t assert.TestingT, test *testing.T, c *harness.Collector) (shown state) {
	body, err := harness.Get(test.Context(), "http://"+c.Address(test, "exporters::ml_view")+"/api/v1/state")
	if assert.NoError(t, err) {
		assert.NoError(t, json.Unmarshal([]byte(body), &shown))
	}
	return shown
}

// files returns the files of a folder, relative to the one that it is in. Lock files
// and counts are not among them.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
			name, _ := filepath.Rel(filepath.Dir(folder), path)
			names = append(names, name)
		}
		return err
	})
	require.NoError(t, err)
	return names
}

// spanOf is the id of the span that deploy sends.
func spanOf(version string) pcommon.SpanID { return pcommon.SpanID{1, version[0]} }

// deploy sends a span of a version of a service.
func deploy(t *testing.T, c *harness.Collector, version string) {
	t.Helper()
	sender, err := harness.NewGRPCSender(c.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", deployed)
	rs.Resource().Attributes().PutStr("service.version", version)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("chat")
	span.SetTraceID(pcommon.TraceID{1, version[0]})
	span.SetSpanID(spanOf(version))
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutStr("gen_ai.request.model", "m")
	require.NoError(t, sender.Traces(t.Context(), td))
}

// changesOf returns the records of changes of the service that a back end has.
func changesOf(backend *harness.Sink) (found []string) {
	for _, ld := range backend.Logs() {
		for _, rl := range ld.ResourceLogs().All() {
			if service, _ := rl.Resource().Attributes().Get("service.name"); service.AsString() != deployed {
				continue
			}
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					if record.EventName() == "ml.change" {
						found = append(found, record.Body().Str())
					}
				}
			}
		}
	}
	return found
}

// Files of file_storage.
const (
	tracesFile  = "exporter_otlp_grpc_jaeger_traces"
	pageFile    = "exporter_ml_view_"
	changesFile = "connector_ml_metrics_"
)

// edit replaces the values of a file of file_storage.
func edit(t *testing.T, folder, name string, change func(key string, value []byte) []byte) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(folder, "storage", name), 0o600, &bbolt.Options{Timeout: arrival})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("default"))
		values := map[string][]byte{}
		err := bucket.ForEach(func(key, value []byte) error {
			values[string(key)] = slices.Clone(value)
			return nil
		})
		for key, value := range values {
			if changed := change(key, value); err == nil && string(changed) != string(value) {
				err = bucket.Put([]byte(key), changed)
			}
		}
		return err
	}))
	require.NoError(t, db.Close())
}

var timestamp = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// age moves the times in the state of components, which leave out what is old, as
// if it was written a while ago.
func age(t *testing.T, folder string, written time.Time) {
	t.Helper()
	by := time.Since(written) - settled
	for _, name := range []string{pageFile, changesFile} {
		moved := 0
		edit(t, folder, name, func(_ string, value []byte) []byte {
			return timestamp.ReplaceAllFunc(value, func(text []byte) []byte {
				at, err := time.Parse(time.RFC3339Nano, string(text))
				require.NoError(t, err)
				moved++
				return []byte(at.Add(by).Format(time.RFC3339Nano))
			})
		})
		require.Positive(t, moved, "%s has no times", name)
	}
}
