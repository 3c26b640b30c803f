package reprogenprocessor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/hosttree"
)

// waits is the record of the nccl receiver that says which ranks of a run wait for which.
func waits(run, text string, at time.Time) plog.Logs {
	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("pytorch.flight_recorder.wait")
	record.SetTimestamp(pcommon.NewTimestampFromTime(at))
	record.SetSeverityNumber(plog.SeverityNumberError)
	record.Body().SetStr(text)
	if run != "" {
		record.Attributes().PutStr(mlattr.RunID, run)
	}
	return ld
}

// laterConfig looks often for what comes after the evidence was written, and for dumps in a folder.
func laterConfig(t *testing.T) (cfg *Config, dump func(name, content string, age time.Duration)) {
	cfg = waitingConfig(t)
	cfg.limits.later = 5 * time.Millisecond
	cfg.Evidence.RootPath = hosttree.Write(t) // whose processes and links are few
	cfg.Evidence.FlightRecorder = []string{"/dumps/trace_rank_*"}
	folder := filepath.Join(cfg.Evidence.RootPath, "dumps")
	require.NoError(t, os.Mkdir(folder, 0o700))
	return cfg, func(name, content string, age time.Duration) {
		t.Helper()
		part := filepath.Join(folder, "part")
		require.NoError(t, os.WriteFile(part, []byte(content), 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(part, at, at))
		require.NoError(t, os.Rename(part, filepath.Join(folder, name)))
	}
}

// evidenceOf sends a hang, and returns the folder of its evidence.
func (w *world) evidenceOf(ld plog.Logs) (folder string) {
	w.t.Helper()
	had := w.count("written")
	body := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().Str()
	require.NoError(w.t, w.logs.ConsumeLogs(w.t.Context(), ld))
	require.Eventually(w.t, func() bool { return w.count("written") > had }, time.Minute, time.Millisecond)
	for _, report := range bundles(w.t, w.cfg) {
		if strings.Contains(text(w.t, filepath.Dir(report), "report.md"), body) {
			folder = filepath.Dir(report)
		}
	}
	require.NotEmpty(w.t, folder)
	return folder
}

// eventually waits until a report has a text.
func eventually(t *testing.T, folder, has string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(text(t, folder, "report.md"), has) }, time.Minute, time.Millisecond, has)
}

func filesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "log.txt" {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestDumpsAfterAHang are added once each for an hour: a watchdog writes them when its timeout is over.
func TestDumpsAfterAHang(t *testing.T) {
	cfg, dump := laterConfig(t)
	dump("trace_rank_0", "of the first timeout", 10*time.Minute)
	w := newWorld(t, cfg)
	folder := w.evidenceOf(hung("run-7", mlattr.ProblemBegan))
	require.Equal(t, []string{"dump-0-trace_rank_0", "report.html", "report.md"}, filesIn(t, folder))

	const complete = -time.Hour // the files of a test are new, which dumps are that may still be written
	dump("trace_rank_"+strings.Repeat("x", 240), "long", complete)
	dump("trace_rank_\n## Forged", "forged", complete)
	dump("trace_rank_8", "of an earlier hang", 2*time.Hour)
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(cfg.Evidence.RootPath, "dumps", "trace_rank_2")))
	dump("trace_rank_0", "again", complete)
	eventually(t, folder, "\n## Added later\n\n- later-0-trace_rank_0, 5 bytes\n")
	dump("trace_rank_1", "second", complete)
	eventually(t, folder, "\n- later-1-trace_rank_1, 6 bytes\n")
	assert.Equal(t, []string{"dump-0-trace_rank_0", "later-0-trace_rank_0", "later-1-trace_rank_1", "report.html", "report.md"}, filesIn(t, folder))
	assert.Equal(t, "of the first timeout", text(t, folder, "dump-0-trace_rank_0"))
	assert.Equal(t, "again", text(t, folder, "later-0-trace_rank_0"))
	report := text(t, folder, "report.md")
	assert.NotContains(t, report, "Forged")
	assert.Equal(t, 1, strings.Count(report, "later-0-"))
	var size int64
	for _, name := range append(filesIn(t, folder), "log.txt") {
		size += int64(len(text(t, folder, name)))
	}
	require.Eventually(t, func() bool { return w.traces.Shared.writer.disk.Bytes() == size }, time.Minute, time.Millisecond, "they count for retention")

	wrote := time.Now()
	dump("trace_rank_5", "still writ", 0)
	dump("trace_rank_6", "whole", complete)
	eventually(t, folder, "trace_rank_6")
	if written := text(t, folder, "report.md"); time.Since(wrote) < 2*time.Second {
		assert.NotContains(t, written, "trace_rank_5")
	}
	require.NoError(t, os.Remove(filepath.Join(cfg.Evidence.RootPath, "dumps", "trace_rank_5")))

	// Another hang gets its own, and the first one what comes until its hour is over.
	w.clock.add(time.Hour)
	other := w.evidenceOf(hung("run-8", mlattr.ProblemBegan))
	dump("trace_rank_3", "third", complete)
	eventually(t, folder, "-trace_rank_3")
	eventually(t, other, "later-0-trace_rank_3")
	w.clock.add(time.Second)
	dump("trace_rank_7", "of a look that may have begun before the hour was over", complete)
	eventually(t, other, "later-1-trace_rank_7")
	dump("trace_rank_4", "fourth", complete)
	eventually(t, other, "later-2-trace_rank_4")
	w.shutdown()
	assert.NotContains(t, text(t, folder, "report.md"), "trace_rank_4")
	assert.EqualValues(t, 2, w.count("written"))
	assert.Zero(t, w.count("dropped"))
}

// TestManyDumpsAfterAHang are bounded in number, however often they are written.
func TestManyDumpsAfterAHang(t *testing.T) {
	cfg, dump := laterConfig(t)
	w := newWorld(t, cfg)
	folder := w.evidenceOf(hung("run-7", mlattr.ProblemBegan))
	large := filepath.Join(cfg.Evidence.RootPath, "dumps", "part")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 64<<20+1))
	require.NoError(t, os.Chtimes(large, time.Time{}, time.Now().Add(time.Hour)))
	require.NoError(t, os.Rename(large, filepath.Join(filepath.Dir(large), "trace_rank_large")))
	eventually(t, folder, "left out, because all are more than 64 MiB or 64 files")
	for n := range 66 {
		dump("trace_rank_again", strings.Repeat("x", n), -time.Hour-time.Duration(n)*time.Second)
		if n < 63 {
			eventually(t, folder, fmt.Sprintf("\n- later-%d-trace_rank_again, %d bytes\n", n+1, n))
		}
	}
	eventually(t, folder, "or 64 files: "+filepath.Join(filepath.Dir(large), "trace_rank_again")+"\n")
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), waits("run-7", "Rank 0 waits.", time.Now())))
	eventually(t, folder, "# Rank 0 waits.\n")
	w.shutdown()
	assert.Len(t, filesIn(t, folder), 65)
	assert.Equal(t, 2, strings.Count(text(t, folder, "report.md"), "left out"))
}

// TestWhoWaitsForWhom is the first sentence of the report, whenever the nccl receiver has said it.
func TestWhoWaitsForWhom(t *testing.T) {
	const sentence = "Ranks 0, 1 wait in nccl:all_reduce #17 of the group default for rank 2, which has not called it."
	cfg, _ := laterConfig(t)
	w := newWorld(t, cfg)
	say := func(run, text string, at time.Time) {
		require.NoError(t, w.logs.ConsumeLogs(t.Context(), waits(run, text, at)))
	}
	now := time.Now()
	say("run-7", "Of an earlier hang.", now.Add(-10*time.Minute))
	stranger := client.NewContext(t.Context(), client.Info{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4317}})
	require.NoError(t, w.logs.ConsumeLogs(stranger, waits("run-7", "Forged.", now)))
	other := waits("run-7", "An event of an application.", now)
	other.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetEventName("app.event")
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), other))

	folder := w.evidenceOf(hung("run-7", mlattr.ProblemBegan))
	const hangs = "Run run-7 looks hung: rank 2 is missing in all_reduce 17.\n\nSince "
	assert.Regexp(t, "^# "+hangs, text(t, folder, "report.md"))
	say("run-8", "Of another run.", now)
	say("run-7", sentence, now)
	say("run-7", "Less is known of another group.", now)
	eventually(t, folder, sentence)
	assert.Regexp(t, `^# `+sentence+`\n\n`+hangs, text(t, folder, "report.md"))

	// It was known before. Dumps hold what anybody has written.
	say("run-9", "Rank 0 waits\n\n## in \x1b[31mall_reduce; api_key=sk-proj-abcdefghijklmnop123456.", now)
	report := text(t, w.evidenceOf(hung("run-9", mlattr.ProblemBegan)), "report.md")
	assert.Regexp(t, `^# Rank 0 waits ## in \[31mall_reduce; api_key=`, report)
	assert.NotContains(t, report, "sk-proj-abcdefghijklmnop123456")

	// A later comparison has more dumps.
	say("run-7", "Ranks 0, 1, 3 wait.", now.Add(time.Minute))
	eventually(t, folder, "# Ranks 0, 1, 3 wait.\n\nRun run-7")
	assert.NotContains(t, text(t, folder, "report.md"), sentence)
}

// TestWhoWaitsInAnUnknownRun is said of the one run that hangs, and of none of several.
func TestWhoWaitsInAnUnknownRun(t *testing.T) {
	cfg, dump := laterConfig(t)
	w := newWorld(t, cfg)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), waits("", "Rank 0 waits for rank 1.", time.Now())))
	first := w.evidenceOf(hung("run-7", mlattr.ProblemBegan))
	assert.Regexp(t, `^# Rank 0 waits for rank 1\.\n`, text(t, first, "report.md"))
	second := w.evidenceOf(hung("run-8", mlattr.ProblemBegan))
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), waits("", "Rank 2 waits for rank 3.", time.Now())))
	dump("trace_rank_0", "dump", -time.Hour)
	eventually(t, first, "later-0-")
	eventually(t, second, "later-0-")
	assert.Regexp(t, `^# Rank 0 waits for rank 1\.\n`, text(t, first, "report.md"))
	assert.Regexp(t, `^# Run run-8 looks hung`, text(t, second, "report.md"))

	// A report to which nothing comes is not written again.
	was, err := os.Stat(filepath.Join(first, "report.md"))
	require.NoError(t, err)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), waits("run-8", "Rank 4 waits.", time.Now())))
	eventually(t, second, "# Rank 4 waits.\n")
	is, err := os.Stat(filepath.Join(first, "report.md"))
	require.NoError(t, err)
	assert.True(t, os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()))
}

// TestHangsAtOnce share a look at the host; one that is concluded later gets its own.
func TestHangsAtOnce(t *testing.T) {
	cfg, _ := laterConfig(t)
	root := cfg.Evidence.RootPath
	hosttree.Change(t, root, "proc/77/cgroup = 0::/", "proc/77/stat = 77 (cp) D 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0",
		"proc/77/task/77/stat = 77 (cp) D 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0", "proc/77/task/77/wchan = nfs_wait_bit_killable")
	both := [2]plog.Logs{hung("run-7", mlattr.ProblemBegan), hung("run-8", mlattr.ProblemBegan)}
	w := newWorld(t, cfg)
	assert.Contains(t, text(t, w.evidenceOf(both[0]), "report.md"), "process 77 (cp)")
	require.NoError(t, os.RemoveAll(filepath.Join(root, "proc", "77")))
	assert.Contains(t, text(t, w.evidenceOf(both[1]), "report.md"), "process 77 (cp)")
	assert.NotContains(t, text(t, w.evidenceOf(hung("run-9", mlattr.ProblemBegan)), "report.md"), "process 77")
}

// TestFabricOfAHang: NCCL waits for ever for a GPU that is not registered with the NVLink fabric.
func TestFabricOfAHang(t *testing.T) {
	cfg, _ := laterConfig(t)
	w := newWorld(t, cfg)
	for i, words := range []string{"", "not started", "in progress", "completed", "completed with an error", ""} {
		batch := gpuAt("node", i, w.clock.now()).memory(gib, 80*gib).workload(gib, map[string]any{"ml.run.id": "run-7"})
		if words != "" {
			batch.point("nvidia.gpu.fabric.state", int64(i), nil)
		}
		w.gpu(batch)
	}
	report := text(t, w.evidenceOf(hung("run-7", mlattr.ProblemBegan)), "report.md")
	for i, words := range []string{"", "not started", "in progress", "completed", "completed with an error", ""} {
		if words != "" {
			words = ", NVLink fabric registration " + words
		}
		assert.Regexp(t, fmt.Sprintf(`\n- GPU %d of node .*: 1\.0 GiB of 80\.0 GiB used%s; `, i, words), report)
	}
}
