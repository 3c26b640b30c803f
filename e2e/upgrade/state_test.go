package upgrade

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// version is a collector and the repository that it was built from.
type version struct{ binary, root string }

func this(t *testing.T) version { return version{harness.CollectorBinary(t), harness.Path()} }

func older(t *testing.T) version {
	root := harness.Older(t)
	return version{filepath.Join(root, "bin", "otelcol-ml"), root}
}

// The kinds of state.
const (
	queue         = "queue"
	page          = "page"
	changes       = "changes"
	reproductions = "reproductions"
	reports       = "reports"
)

// contents is what a folder with state has. It is written beside the state.
type contents struct {
	Written time.Time `json:"written"`
	// Spans are the ids of queued spans.
	Spans []string `json:"spans"`
	// Runs and Failures are what the page shows, runs with their state.
	Runs     map[string]string `json:"runs"`
	Failures []string          `json:"failures"`
	// Files are those of reproductions and of reports, relative to the folder.
	Files []string `json:"files"`
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

// start starts a version with its own agent.yaml and with its state in a folder.
func start(t *testing.T, v version, folder, backend string) *harness.Collector {
	t.Helper()
	return harness.StartCollector(t, harness.CollectorOptions{
		Binary: v.binary,
		Config: filepath.Join(v.root, "distribution", "config", "agent.yaml"),
		Merged: []string{testdata("state.yaml")},
		Env: []string{
			"STATE_DIR=" + folder,
			"JAEGER_ENDPOINT=" + backend, "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + backend,
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(folder, reproductions),
			"ML_VIEW_REPRODUCTIONS=" + filepath.Join(folder, reproductions), // of older versions
			"ML_VIEW_REPORTS=" + filepath.Join(folder, reports),
		},
	})
}

func testdata(name string) string { return harness.Path("e2e", "upgrade", "testdata", name) }

// fill has a version write its state into a folder.
func fill(t *testing.T, v version, folder string) contents {
	t.Helper()
	c := start(t, v, folder, refusing)
	sent := harness.Generate(t, c, harness.Workload{Seed: 1, JobID: "48101", Scenarios: "torchtel,taskweaver", Duration: 2 * time.Second, Rate: 4, Ranks: 1})
	deploy(t, c, "1")
	in := contents{Runs: map[string]string{}}
	for _, span := range sent.Spans {
		in.Spans = append(in.Spans, span.SpanID)
	}
	require.EventuallyWithT(t, func(e *assert.CollectT) {
		shown := read(e, t, c)
		ended := 0
		in.Failures = nil
		for _, run := range shown.Runs {
			in.Runs[run.ID] = run.State
			if run.State == "ended" {
				ended++
			}
		}
		for _, failure := range shown.Failures {
			if failure.Command != "" {
				in.Failures = append(in.Failures, failure.Key)
			}
		}
		in.Files = append(files(t, filepath.Join(folder, reproductions)), files(t, filepath.Join(folder, reports))...)
		assert.Positive(e, ended)
		assert.NotEmpty(e, in.Failures)
		assert.True(e, slices.ContainsFunc(in.Files, func(name string) bool { return strings.HasSuffix(name, ".html") }))
		assert.True(e, slices.ContainsFunc(in.Files, func(name string) bool { return strings.HasSuffix(name, "repro.py") }))
	}, arrival, poll)
	require.Zero(t, c.Stop(t), "exit code")
	in.Written = time.Now().UTC()
	return in
}

// check starts a version on a folder and expects what the folder has, except for
// the kind of state that is lost.
func check(t *testing.T, v version, folder string, in contents, lost string) *harness.Collector {
	t.Helper()
	backend := harness.StartSink(t)
	c := start(t, v, folder, backend.Endpoint)
	if lost != queue {
		require.EventuallyWithT(t, func(e *assert.CollectT) {
			arrived := map[string]bool{}
			for _, span := range backend.Spans() {
				arrived[span.SpanID().String()] = true
			}
			missing := slices.DeleteFunc(slices.Clone(in.Spans), func(id string) bool { return arrived[id] })
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
	for _, name := range in.Files {
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
	for id, state := range in.Runs {
		if lost != page {
			assert.Equal(t, state, runs[id], "run %s", id)
		}
	}
	for _, key := range in.Failures {
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
	span.SetSpanID(pcommon.SpanID{1, version[0]})
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

// unpack returns a copy of what pack has packed.
func unpack(t *testing.T, archive string) (folder string, in contents) {
	t.Helper()
	folder = t.TempDir()
	code, output := harness.Run(t, harness.Command{Name: "tar", Path: "tar", Args: []string{"-xzpf", archive, "-C", folder}}, arrival)
	require.Zero(t, code, output)
	text, err := os.ReadFile(filepath.Join(folder, "contents.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &in))
	return folder, in
}

// pack writes a folder with state and what it has into an archive.
func pack(t *testing.T, folder string, in contents, archive string) {
	t.Helper()
	text, err := json.Marshal(in)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "contents.json"), text, 0o600))
	code, output := harness.Run(t, harness.Command{Name: "tar", Path: "tar", Env: []string{"GZIP=-9"}, Args: []string{"-czf", archive, "--sort=name", "--owner=0", "--group=0", "-C", folder, "."}}, arrival)
	require.Zero(t, code, output)
}
