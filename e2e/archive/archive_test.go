package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Two workloads, between which the collector is killed.
var (
	firstWorkload = harness.Workload{
		Seed: 1, Scenarios: "all", Incidents: "slow-input,bad-version", Duration: 2500 * time.Millisecond, Rate: 100, Ranks: 2,
		MetricsInterval: time.Second,
	}
	secondWorkload = harness.Workload{Seed: 2, Scenarios: "fx,taskweaver", Duration: time.Second, Rate: 50, Ranks: 1}
)

// archived is an archive, and what is known of its spans.
type archived struct {
	folder, parquet string
	first           *sentlog.Log
	truth           truth
	// series are what the collector derived of the first workload.
	series map[string]float64
}

// firstSpans is the number of spans that the first collector archives.
func (a *archived) firstSpans() int { return len(a.first.Spans) + len(plantedRequests) }

// TestArchive archives two workloads, with a kill -9 after each. The parts share the
// archive.
func TestArchive(t *testing.T) {
	a := makeArchive(t)
	t.Run("rotation", func(t *testing.T) { testRotation(t, a) })
	t.Run("redaction", func(t *testing.T) { testRedaction(t, a) })
	t.Run("questions", func(t *testing.T) { testQuestions(t, a) })
	t.Run("replay", func(t *testing.T) { testReplay(t, a) })
	t.Run("deletion", func(t *testing.T) { testDeletion(t, a) })
}

func makeArchive(t *testing.T) *archived {
	t.Helper()
	a := &archived{folder: filepath.Join(t.TempDir(), "archive"), parquet: filepath.Join(t.TempDir(), "parquet")}
	collector := startArchive(t, a.folder, harness.CollectorOptions{}, "ARCHIVE_FILE_MIB=1")
	a.first = harness.Generate(t, collector, firstWorkload)
	planted := plant(t, collector)
	awaitArchived(t, collector, a.firstSpans())
	a.series = derived(t, collector)
	collector.Kill(t)

	collector = startArchive(t, a.folder, harness.CollectorOptions{}, "ARCHIVE_FILE_MIB=1")
	second := harness.Generate(t, collector, secondWorkload)
	awaitArchived(t, collector, len(second.Spans))
	collector.Kill(t)

	a.truth = truth{spans: slices.Concat(a.first.Spans, second.Spans), newest: planted}
	for _, span := range a.truth.spans {
		a.truth.newest = max(a.truth.newest, span.EndUnixNano)
	}
	run(t, nil, "convert", a.folder, a.parquet)
	return a
}

// Full files have a time in their names, and the folder is private.
func testRotation(t *testing.T, a *archived) {
	entries, err := os.ReadDir(a.folder)
	require.NoError(t, err)
	assert.Greater(t, len(entries), 1, "1 MiB makes more than one file")
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		assert.LessOrEqual(t, info.Size(), int64(1<<20), entry.Name())
		assert.Regexp(t, `^traces\.jsonl(-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}-size)?\.zst$`, entry.Name())
	}
	folder, err := os.Stat(a.folder)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), folder.Mode().Perm())
}

var spanID = regexp.MustCompile(`"spanId":"([0-9a-f]{16})"`)

// No text of the planted requests and no user's name is archived, but all ids are.
func testRedaction(t *testing.T, a *archived) {
	all := run(t, nil, "text", a.folder)
	assert.Contains(t, all, plantedTrace)
	assert.NotContains(t, all, secretText)
	assert.NotContains(t, all, "alice")
	assert.Contains(t, all, hashOf("alice"))
	ids := map[string]bool{}
	for _, match := range spanID.FindAllStringSubmatch(all, -1) {
		ids[match[1]] = true
	}
	assert.Len(t, ids, len(a.truth.spans)+len(plantedRequests))
	for _, span := range a.truth.spans {
		require.True(t, ids[span.SpanID], "span %s %q is not archived", span.SpanID, span.Name)
	}
}

// Without redaction the text is there. SIGTERM writes the batch that is not full.
func TestArchiveOfText(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	collector := startArchive(t, folder, harness.CollectorOptions{
		Overrides: map[string]any{"processors::batch/archive::timeout": "1h"},
	}, "ARCHIVE_PROCESSORS=[batch/archive]")
	plant(t, collector)
	assert.Zero(t, collector.Stop(t))
	assert.Contains(t, run(t, nil, "text", folder), secretText)
}

// A disk on which the archive cannot grow refuses nothing to clients. What does not fit
// is counted, and what was written can be read.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	sink := harness.StartSink(t)
	collector := startArchive(t, folder, harness.CollectorOptions{FileLimit: 100 << 10}, "JAEGER_ENDPOINT="+sink.Endpoint)
	sent := harness.Generate(t, collector, harness.Workload{Seed: 3, Scenarios: "taskweaver", Duration: 2 * time.Second, Rate: 100, Ranks: 1})
	failed := harness.Labels{"exporter": "file/archive"}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		written := own(c, t, collector, "otelcol_exporter_sent_spans", failed)
		lost := own(c, t, collector, "otelcol_exporter_send_failed_spans", failed)
		assert.Positive(c, written)
		assert.Positive(c, lost)
		assert.Equal(c, len(sent.Spans), int(written+lost))
		assert.Len(c, sink.Spans(), len(sent.Spans))
	}, timeout, harness.ArrivalPoll)
	collector.Kill(t)

	// With room again, the next start continues the file behind the damaged end.
	collector = startArchive(t, folder, harness.CollectorOptions{}, "JAEGER_ENDPOINT="+sink.Endpoint)
	plant(t, collector)
	awaitArchived(t, collector, len(plantedRequests))
	collector.Kill(t)
	parquet := filepath.Join(t.TempDir(), "parquet")
	_, errors, err := tryRun(t, nil, "convert", folder, parquet)
	require.NoError(t, err, errors)
	assert.Contains(t, errors, "damaged")
	services := map[any]bool{}
	for _, one := range ask(t, parquet, "failures") {
		services[one["service"]] = true
	}
	assert.Len(t, services, 2, "failures before and after the damage: %v", services)
}

// Without the feature gate the files are of another format. The program says so.
func TestWithoutTheFeatureGate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, current), append([]byte{0, 0, 0, 9}, bytes.Repeat([]byte{1}, 9)...), 0o600))
	_, errors, err := tryRun(t, nil, "convert", folder, t.TempDir())
	require.Error(t, err)
	assert.Contains(t, errors, nativeCompression)
}

// testDeletion removes a run and a user. Nothing else changes, and the archive can be
// converted and replayed as before.
func testDeletion(t *testing.T, a *archived) {
	count := func() map[string]float64 {
		counts := map[string]float64{}
		for _, one := range ask(t, a.parquet, "step_times") {
			counts[fmt.Sprint(one["run"])] += one["steps"].(float64)
		}
		for _, one := range ask(t, a.parquet, "tokens_by_user") {
			counts[fmt.Sprint(one["user"])] += one["requests"].(float64)
		}
		return counts
	}
	want := count()
	require.Contains(t, want, "qwen-dpo-48260")
	alice := strings.TrimSpace(run(t, []string{"OTELCOL_ML_HASH_KEY=" + hashKey}, "user", "alice"))
	require.Contains(t, want, alice)
	delete(want, "qwen-dpo-48260")
	delete(want, alice)

	_, errors, err := tryRun(t, nil, "delete", a.folder, "--user", alice)
	require.NoError(t, err)
	assert.Contains(t, errors, "--stopped", "the current file is kept")
	run(t, nil, "convert", a.folder, a.parquet)
	require.Contains(t, count(), alice)

	run(t, nil, "delete", a.folder, "--user", alice, "--stopped")
	run(t, nil, "delete", a.folder, "--run", "qwen-dpo-48260", "--stopped")
	run(t, nil, "convert", a.folder, a.parquet)
	assert.Equal(t, want, count())
	left := run(t, nil, "text", a.folder)
	assert.NotContains(t, left, "qwen-dpo-48260")
	assert.NotContains(t, left, alice)
	testRotation(t, a)
}
