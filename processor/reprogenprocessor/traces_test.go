package reprogenprocessor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadatatest"
)

func mean() failedCall {
	return failedCall{payload: call("statistics", "mean", "[[]]", "{}"),
		errorType: "statistics.StatisticsError", message: "mean requires at least one data point"}
}

type groupJSON struct {
	Fingerprint, Kind, Type, Message string
	Count, Suppressed                int64
	Services, Exemplars              []string
	Versions, Ranks                  []string
	Variants                         []struct {
		Text, Exemplar string
		Count          int64
	}
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
}

func groups(t testing.TB, cfg *Config) []groupJSON {
	found, err := filepath.Glob(filepath.Join(cfg.Directory, "*", "group.json"))
	require.NoError(t, err)
	var out []groupJSON
	for _, f := range found {
		var g groupJSON
		require.NoError(t, json.Unmarshal([]byte(text(t, f)), &g))
		assert.Equal(t, filepath.Base(filepath.Dir(f)), g.Fingerprint)
		out = append(out, g)
	}
	return out
}

func TestSpanLeadsToTheArtifact(t *testing.T) {
	cfg := testConfig(t)
	sink := produce(t, cfg, mean().traces())
	span := sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	fingerprint, ok := span.Attributes().Get("repro.artifact.fingerprint")
	require.True(t, ok)
	path, ok := span.Attributes().Get("repro.artifact.path")
	require.True(t, ok)
	assert.FileExists(t, filepath.Join(cfg.Directory, path.Str(), "group.json"))
	assert.Equal(t, fingerprint.Str(), groups(t, cfg)[0].Fingerprint)

	payload, _ := span.Attributes().Get("repro.payload")
	assert.Equal(t, mean().payload, payload.Str(), "what the producer sent stays")

	artifact := onlyArtifact(t, cfg)
	for path, mode := range map[string]os.FileMode{
		cfg.Directory: 0o700, filepath.Dir(artifact): 0o700, artifact: 0o700,
		filepath.Join(artifact, "repro.py"): 0o600, filepath.Join(artifact, "trace.json"): 0o600,
		filepath.Join(artifact, "report.md"): 0o600, filepath.Join(artifact, "../group.json"): 0o600,
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), path)
	}
	assert.Regexp(t, `^[0-9]{8}T[0-9]{6}Z-0{30}01-0{14}01$`, filepath.Base(artifact))
}

func TestWithoutErrorsNothingChanges(t *testing.T) {
	td := mean().traces()
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(ptrace.StatusCodeOk)
	failedCall{name: "dataloader.next", errorType: "StopIteration", attrs: map[string]any{"ml.epoch_end": true}}.appendTo(td)
	before := ptrace.NewTraces()
	td.CopyTo(before)
	cfg := testConfig(t)
	sink := produce(t, cfg, td)
	assert.Equal(t, before, sink.AllTraces()[0])
	assert.Empty(t, artifacts(t, cfg))
}

// TestGroupType: a failure that names no type, as TaskWeaver's spans, has the
// semantic conventions' word for it, whether or not its client says so.
func TestGroupType(t *testing.T) {
	for name, tc := range map[string]struct {
		failedCall
		want string
	}{
		"an exception's":       {mean(), "statistics.StatisticsError"},
		"the span's":           {failedCall{attrs: map[string]any{"error.type": "timeout"}}, "timeout"},
		"none":                 {failedCall{name: "TaskWeaver.Planner.reply"}, "_OTHER"},
		"none, and it is said": {failedCall{attrs: map[string]any{"error.type": "_OTHER"}}, "_OTHER"},
	} {
		t.Run(name, func(t *testing.T) {
			td := tc.traces()
			spans(td)[0].Status().SetMessage("the plan could not be carried out")
			cfg := testConfig(t)
			produce(t, cfg, td)
			g := groups(t, cfg)
			require.Len(t, g, 1)
			assert.Equal(t, tc.want, g[0].Type)
			assert.NotEmpty(t, g[0].Message)
			if tc.want == mlattr.Other {
				assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), `"type": ""`, "the script has no type to compare")
			}
		})
	}
}

func TestDeduplication(t *testing.T) {
	cfg := testConfig(t)
	var batches []ptrace.Traces
	for i := range 10 {
		f := mean().variant(i / 2)
		f.trace = byte(i + 1)
		batches = append(batches, f.traces())
	}
	other := mean()
	other.service, other.trace = "another", 99
	produce(t, cfg, append(batches, other.traces())...)
	assert.Len(t, artifacts(t, cfg), 4, "three variants of the first group, one of the second")
	counts := map[int64]int{}
	for _, g := range groups(t, cfg) {
		for i, v := range g.Variants {
			assert.Equal(t, i < 3, v.Exemplar != "", "variant %d", i)
			assert.LessOrEqual(t, v.Count, int64(2))
		}
		counts[g.Count] = len(g.Exemplars)
		assert.Equal(t, "statistics.StatisticsError", g.Type)
	}
	assert.Equal(t, map[int64]int{10: 3, 1: 1}, counts)
}

func TestRestartKeepsCounts(t *testing.T) {
	cfg := testConfig(t)
	for i := range 5 {
		f := mean().variant(i)
		f.trace = byte(i + 1)
		produce(t, cfg, f.traces())
	}
	g := groups(t, cfg)
	require.Len(t, g, 1)
	assert.EqualValues(t, 5, g[0].Count)
	assert.Len(t, g[0].Exemplars, 3)
	assert.True(t, g[0].FirstSeen.Before(g[0].LastSeen))
}

func TestUnreadableGroupIsMovedAway(t *testing.T) {
	for name, damage := range map[string]func(group string){
		"damaged": func(group string) { write(t, group, "{damaged") },
		"newer":   func(group string) { newer(t, group) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			produce(t, cfg, mean().traces(), mean().traces())
			group := filepath.Join(cfg.Directory, groups(t, cfg)[0].Fingerprint, "group.json")
			damage(group)
			unreadable := text(t, group)
			again := mean()
			again.trace = 2
			produce(t, cfg, again.traces())
			assert.EqualValues(t, 2, groups(t, cfg)[0].Count, "what the folder holds was seen")
			assert.Equal(t, unreadable, text(t, group+".backup"))
		})
	}
}

// newer has a file begin like one of a newer version.
func newer(t *testing.T, name string) {
	t.Helper()
	content := text(t, name)
	changed := regexp.MustCompile(`"schema": ?1`).ReplaceAllString(content, `"schema": 2`)
	require.NotEqual(t, content, changed)
	write(t, name, changed)
}

// TestChoice says which spans of a batch get an artifact.
func TestChoice(t *testing.T) {
	leaf := failedCall{name: "leaf", span: 3, parent: 2, errorType: "ValueError", message: "broken"}
	middle := failedCall{name: "middle", span: 2, parent: 1, errorType: "ValueError", message: "broken"}
	root := failedCall{name: "root", span: 1, errorType: "ValueError", message: "broken"}
	withPayload := func(c failedCall) failedCall { c.payload = call("json", "dumps", "[1]", "{}"); return c }
	other := func(c failedCall) failedCall { c.message = "something else happened"; return c }
	for name, tc := range map[string]struct {
		spans []failedCall
		want  []string
	}{
		"the deepest":                          {[]failedCall{root, middle, leaf}, []string{"leaf"}},
		"children first":                       {[]failedCall{leaf, middle, root}, []string{"leaf"}},
		"the one with a payload":               {[]failedCall{leaf, withPayload(middle), root}, []string{"middle"}},
		"the deepest with a payload":           {[]failedCall{withPayload(leaf), withPayload(middle), root}, []string{"leaf"}},
		"a payload of another error":           {[]failedCall{leaf, withPayload(other(middle)), root}, []string{"leaf"}},
		"two leaves of one error":              {[]failedCall{leaf, {name: "twin", span: 4, parent: 2, errorType: "ValueError", message: "broken"}}, []string{"leaf"}},
		"two leaves of two errors":             {[]failedCall{leaf, {name: "twin", span: 4, parent: 2, errorType: "KeyError", message: "k"}}, []string{"leaf", "twin"}},
		"a span its own parent":                {[]failedCall{{name: "self", span: 1, parent: 1, message: "x"}}, []string{"self"}},
		"two spans each other's parent":        {[]failedCall{{name: "a", span: 1, parent: 2, message: "x"}, {name: "b", span: 2, parent: 1, message: "x"}}, []string{"a"}},
		"the same ids in two traces":           {[]failedCall{leaf, {name: "elsewhere", trace: 2, span: 2, parent: 3, message: "y"}}, []string{"leaf", "elsewhere"}},
		"an error below a span without errors": {[]failedCall{leaf}, []string{"leaf"}},
	} {
		t.Run(name, func(t *testing.T) {
			td := ptrace.NewTraces()
			for _, s := range tc.spans {
				s.appendTo(td)
			}
			cfg := testConfig(t)
			produce(t, cfg, td)
			var got []string
			for _, a := range artifacts(t, cfg) {
				var trace struct{ Span struct{ Name string } }
				require.NoError(t, json.Unmarshal([]byte(text(t, a, "trace.json")), &trace))
				got = append(got, trace.Span.Name)
			}
			assert.ElementsMatch(t, tc.want, got)
		})
	}
}

// TestLaterSpanLeadsToTheSameArtifact: the parent arrives in another batch,
// and tells of the error that has an artifact already.
func TestLaterSpanLeadsToTheSameArtifact(t *testing.T) {
	child := failedCall{name: "child", span: 2, parent: 1, errorType: "ValueError", message: "broken"}
	parent := failedCall{name: "parent", span: 1, errorType: "ValueError", message: "broken"}
	cfg := testConfig(t)
	sink := produce(t, cfg, child.traces(), parent.traces())
	for _, td := range sink.AllTraces() {
		path, _ := spans(td)[0].Attributes().Get("repro.artifact.path")
		assert.DirExists(t, filepath.Join(cfg.Directory, path.Str()))
	}
	onlyArtifact(t, cfg)
}

// TestPayloadThatComesLater: the child arrives first and has no payload.
func TestPayloadThatComesLater(t *testing.T) {
	child := failedCall{name: "child", span: 2, parent: 1, errorType: "ValueError", message: "broken"}
	parent := failedCall{name: "parent", span: 1, errorType: "ValueError", message: "broken", payload: call("json", "dumps", "[1]", "{}")}
	cfg := testConfig(t)
	produce(t, cfg, child.traces(), parent.traces(), child.traces(), parent.traces())
	kinds := map[string]int64{}
	for _, g := range groups(t, cfg) {
		kinds[g.Kind] = g.Count
	}
	assert.Equal(t, map[string]int64{"context": 1, "python_call": 1}, kinds)
}

func TestAncestors(t *testing.T) {
	td := ptrace.NewTraces()
	leaf := failedCall{name: "leaf", span: 3, parent: 2, errorType: "ValueError"}
	leaf.appendTo(td)
	for _, s := range []failedCall{{name: "middle", span: 2, parent: 1}, {name: "root", span: 1, attrs: map[string]any{"ml.run.id": "run-1"}}} {
		s.appendTo(td).Status().SetCode(ptrace.StatusCodeUnset)
	}
	cfg := testConfig(t)
	produce(t, cfg, td)
	var trace struct {
		Complete  bool
		Ancestors []struct{ Name string }
	}
	artifact := onlyArtifact(t, cfg)
	require.NoError(t, json.Unmarshal([]byte(text(t, artifact, "trace.json")), &trace))
	assert.True(t, trace.Complete)
	require.Len(t, trace.Ancestors, 2)
	assert.Equal(t, "middle", trace.Ancestors[0].Name)
	assert.Contains(t, text(t, artifact, "repro.py"), "run-1", "the ancestors' keys are in the script")

	alone := testConfig(t)
	produce(t, alone, leaf.traces())
	assert.Contains(t, text(t, onlyArtifact(t, alone), "trace.json"), `"complete": false`)
}

func TestRateLimit(t *testing.T) {
	cfg := testConfig(t)
	cfg.ArtifactsPerMinute, cfg.limits.burst = 1, 4
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, sink := startTraces(t, cfg, metadatatest.NewSettings(tel))
	for i := range 100 { // a flood of unlike errors of one service
		f := failedCall{service: "noisy", errorType: "E" + strings.Repeat("x", i), trace: byte(i + 1)}
		require.NoError(t, p.ConsumeTraces(t.Context(), f.traces()))
	}
	quiet := failedCall{service: "quiet", errorType: "ValueError", trace: 200}
	require.NoError(t, p.ConsumeTraces(t.Context(), quiet.traces()))
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, 101, sink.SpanCount())
	assert.Len(t, artifacts(t, cfg), 3, "half for the flood, and the quiet one")
	metadatatest.AssertEqualProcessorReproGenCandidates(t, tel,
		[]metricdata.DataPoint[int64]{{Value: 101, Attributes: ofProcessor("repro_gen")}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorReproGenWritten(t, tel,
		[]metricdata.DataPoint[int64]{{Value: 3, Attributes: ofProcessor("repro_gen")}}, metricdatatest.IgnoreTimestamp())
}

// TestFirstExamplesGoFirst: a frequent failure must not use up what a rare one
// needs, and a span without an artifact leads to none.
func TestFirstExamplesGoFirst(t *testing.T) {
	cfg := testConfig(t)
	cfg.ArtifactsPerMinute, cfg.limits.burst = 1, 8 // 4 for the one service
	var batches []ptrace.Traces
	for i := range 3 {
		f := mean().variant(i)
		f.trace = byte(i + 1)
		batches = append(batches, f.traces())
	}
	for i := range 3 {
		f := unlike(i)
		f.trace = byte(i + 10)
		f.attrs = map[string]any{"repro.artifact.path": "claimed/by/the/client"}
		batches = append(batches, f.traces())
	}
	sink := produce(t, cfg, batches...)
	counts := map[string]int{}
	for _, g := range groups(t, cfg) {
		counts[g.Type] = len(g.Exemplars)
	}
	assert.Equal(t, map[string]int{"statistics.StatisticsError": 2, "Ea": 1, "Eb": 1}, counts,
		"the third of the first kind leaves its place to others")
	for i, td := range sink.AllTraces() {
		attrs := spans(td)[0].Attributes()
		fingerprint, ok := attrs.Get("repro.artifact.fingerprint")
		require.True(t, ok, "span %d", i)
		path, ok := attrs.Get("repro.artifact.path")
		assert.Equal(t, i < 5, ok, "span %d", i)
		if ok {
			assert.Equal(t, fingerprint.Str(), path.Str())
			assert.DirExists(t, filepath.Join(cfg.Directory, path.Str()))
		}
	}
}

// TestRepeatedWithoutArtifact: the child found the limit used up, and its
// parent, which tells of the same error, leads nowhere either.
func TestRepeatedWithoutArtifact(t *testing.T) {
	cfg := testConfig(t)
	cfg.ArtifactsPerMinute, cfg.limits.burst = 1, 1
	child := failedCall{name: "child", trace: 2, span: 2, parent: 1, errorType: "ValueError", message: "broken"}
	parent := failedCall{name: "parent", trace: 2, span: 1, errorType: "ValueError", message: "broken"}
	sink := produce(t, cfg, mean().traces(), child.traces(), parent.traces())
	for i, td := range sink.AllTraces() {
		_, ok := spans(td)[0].Attributes().Get("repro.artifact.path")
		assert.Equal(t, i == 0, ok, "span %d", i)
	}
	onlyArtifact(t, cfg)
}

func TestRetention(t *testing.T) {
	cfg := testConfig(t)
	cfg.Retention.MaxArtifacts = 4
	var batches []ptrace.Traces
	for i := range 3 {
		f := mean().variant(i)
		f.trace = byte(i + 1)
		batches = append(batches, f.traces())
	}
	for i := range 3 {
		f := failedCall{errorType: "E" + strings.Repeat("x", i), trace: byte(i + 10)}
		batches = append(batches, f.traces())
	}
	produce(t, cfg, batches...)
	assert.Len(t, artifacts(t, cfg), 4)
	assert.Len(t, groups(t, cfg), 4, "each group keeps its last one while another has more")

	cfg.Retention.MaxArtifacts = 1
	produce(t, cfg, failedCall{errorType: "Last", trace: 77}.traces())
	require.Len(t, artifacts(t, cfg), 1)
	require.Len(t, groups(t, cfg), 1)
	entries, err := os.ReadDir(cfg.Directory)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "the lock and one group; folders without artifacts are gone")
}

// TestWriteErrors: whatever the disk says, the telemetry goes on.
func TestWriteErrors(t *testing.T) {
	cfg := testConfig(t)
	sink := produce(t, cfg, mean().traces())
	path, _ := sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("repro.artifact.path")
	folder := filepath.Join(cfg.Directory, path.Str())
	require.NoError(t, os.RemoveAll(folder))
	for name, obstacle := range map[string]func(){
		"a file":          func() { write(t, folder, "in the way") },
		"a symbolic link": func() { require.NoError(t, os.Symlink(t.TempDir(), folder)) },
		"a link inside":   func() { require.NoError(t, os.Symlink(".", folder)) },
	} {
		t.Run(name, func(t *testing.T) {
			obstacle()
			t.Cleanup(func() { require.NoError(t, os.Remove(folder)) })
			tel := componenttest.NewTelemetry()
			defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
			p, sink := startTraces(t, cfg, metadatatest.NewSettings(tel))
			require.NoError(t, p.ConsumeTraces(t.Context(), mean().traces()))
			require.NoError(t, p.Shutdown(t.Context()))
			assert.Equal(t, 1, sink.SpanCount())
			got, err := tel.GetMetric("otelcol_processor_repro_gen_dropped")
			require.NoError(t, err)
			points := got.Data.(metricdata.Sum[int64]).DataPoints
			require.Len(t, points, 1)
			reason, _ := points[0].Attributes.Value("reason")
			assert.Equal(t, "write_error", reason.AsString())
			leftovers, err := filepath.Glob(filepath.Join(cfg.Directory, ".tmp-*"))
			require.NoError(t, err)
			assert.Empty(t, leftovers)
		})
	}
}

func TestTraversalByName(t *testing.T) {
	cfg := testConfig(t)
	outside := t.TempDir()
	f := mean()
	f.service, f.name = "../../../../"+outside+"/x", "../../"+outside+"/y"
	f.attrs = map[string]any{"repro.fingerprint": "../../" + outside, "repro.artifact.path": outside, "repro.artifact.fingerprint": "../x"}
	produce(t, cfg, f.traces())
	onlyArtifact(t, cfg)
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestTmpLeftoversAreSwept(t *testing.T) {
	cfg := testConfig(t)
	write(t, filepath.Join(cfg.Directory, ".tmp-1", "repro.py"), "half")
	write(t, filepath.Join(cfg.Directory, "notes.txt"), "a person's own")
	write(t, filepath.Join(cfg.Directory, "0123456789abcdef", "notes.txt"), "a person's own")
	produce(t, cfg, mean().traces())
	onlyArtifact(t, cfg)
	assert.NoDirExists(t, filepath.Join(cfg.Directory, ".tmp-1"))
	assert.FileExists(t, filepath.Join(cfg.Directory, "notes.txt"))
	assert.FileExists(t, filepath.Join(cfg.Directory, "0123456789abcdef", "notes.txt"))
}

func TestUnusableDirectory(t *testing.T) {
	base := t.TempDir()
	write(t, filepath.Join(base, "file"), "x")
	target := filepath.Join(base, "real")
	require.NoError(t, os.Mkdir(target, 0o700))
	require.NoError(t, os.Symlink(target, filepath.Join(base, "link")))
	open := filepath.Join(base, "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	for name, tc := range map[string]struct{ directory, remedy string }{
		"below a file":          {filepath.Join(base, "file", "x"), "name a directory that the collector's user may create"},
		"a file":                {filepath.Join(base, "file"), "name"},
		"a symbolic link":       {filepath.Join(base, "link"), "name the directory that it leads to"},
		"writable by everybody": {open, "chmod 0700"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.Directory = tc.directory
			p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			err = p.Start(t.Context(), componenttest.NewNopHost())
			require.ErrorContains(t, err, `"directory"`)
			require.ErrorContains(t, err, tc.remedy)
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}

// readOnlyFolder returns a folder of this user that passes for private and in
// which nothing can be created. Modes do not stop root; the kernel's own
// folder of this process does.
func readOnlyFolder(t *testing.T) string {
	if os.Geteuid() == 0 {
		return filepath.Join("/proc", strconv.Itoa(os.Getpid()), "task")
	}
	folder := filepath.Join(t.TempDir(), "read-only")
	require.NoError(t, os.Mkdir(folder, 0o500))
	return folder
}

func TestReadOnlyDirectory(t *testing.T) {
	cfg := testConfig(t)
	cfg.Directory = readOnlyFolder(t)
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, p.Start(t.Context(), componenttest.NewNopHost()), "make the folder writable")
	require.NoError(t, p.Shutdown(t.Context()))
}

func TestDirectoryInUse(t *testing.T) {
	cfg := testConfig(t)
	p, _ := startTraces(t, cfg, processortest.NewNopSettings(metadata.Type))
	second, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context(), componenttest.NewNopHost()), "in use by another collector")
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, second.Start(t.Context(), componenttest.NewNopHost()), "free after the first has gone")
	require.NoError(t, second.Shutdown(t.Context()))
}

// TestOneWriterForAllSignals: a traces and a logs pipeline may name the same
// id, and share the directory.
func TestOneWriterForAllSignals(t *testing.T) {
	cfg := testConfig(t)
	f := NewFactory()
	set := processortest.NewNopSettings(metadata.Type)
	traces, err := f.CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	sink := &consumertest.LogsSink{}
	logs, err := f.CreateLogs(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("x")
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
	assert.Equal(t, 1, sink.LogRecordCount())
	require.NoError(t, logs.Shutdown(t.Context()))
	require.NoError(t, traces.ConsumeTraces(t.Context(), mean().traces()))
	require.NoError(t, traces.Shutdown(t.Context()))
	onlyArtifact(t, cfg)
}

func TestManyAtOnce(t *testing.T) {
	cfg := testConfig(t)
	p, sink := startTraces(t, cfg, processortest.NewNopSettings(metadata.Type))
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 50 {
				f := failedCall{errorType: fmt.Sprintf("E%c", 'a'+rune(i%10)), trace: byte(i + 1), span: byte(worker + 1)}
				td := f.traces()
				td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID(pcommon.TraceID{byte(worker), byte(i)})
				assert.NoError(t, p.ConsumeTraces(context.Background(), td))
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, 400, sink.SpanCount())
	var total int64
	for _, g := range groups(t, cfg) {
		total += g.Count
		assert.LessOrEqual(t, len(g.Exemplars), 3)
	}
	assert.EqualValues(t, 400, total)
}
