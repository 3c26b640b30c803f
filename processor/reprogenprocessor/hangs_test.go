package reprogenprocessor

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/hosttree"
)

// hung is the record of ml_metrics that a run hangs.
func hung(run, state string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr(mlattr.ServiceName, "trainer")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName(mlattr.Problem)
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	record.SetSeverityNumber(plog.SeverityNumberError)
	record.Body().SetStr("Run " + run + " looks hung: rank 2 is missing in all_reduce 17.")
	a := record.Attributes()
	a.PutStr(mlattr.Problem, mlattr.ProblemLooksHung)
	a.PutStr(mlattr.ProblemID, "p-"+run)
	a.PutStr(mlattr.ProblemState, state)
	a.PutDouble(mlattr.ProblemOnset, float64(time.Now().Add(-5*time.Minute).Unix()))
	a.PutStr(mlattr.RunID, run)
	a.PutStr(mlattr.ProblemNext, "py-spy dump --pid <rank 2>")
	a.PutEmptySlice(mlattr.ProblemEvidence).AppendEmpty().SetStr("GPUs wait for each other")
	return ld
}

// rank starts a process as a launcher does, which waits.
func rank(t *testing.T, run string, rank int) int {
	t.Helper()
	waiting := exec.CommandContext(t.Context(), "sleep", "600")
	waiting.Env = []string{"TORCHELASTIC_RUN_ID=" + run, "RANK=" + strconv.Itoa(rank), "PATH=" + os.Getenv("PATH")}
	require.NoError(t, waiting.Start())
	t.Cleanup(func() {
		_ = waiting.Process.Kill()
		_ = waiting.Wait()
	})
	return waiting.Process.Pid
}

// bundle waits for the evidence of a hang.
func bundle(t *testing.T, cfg *Config) string {
	t.Helper()
	require.Eventually(t, func() bool {
		written, _ := filepath.Glob(filepath.Join(cfg.Directory, "*", "group.json"))
		return len(written) > 0
	}, 2*time.Minute, 10*time.Millisecond)
	found, err := filepath.Glob(filepath.Join(cfg.Directory, "*", "*", "report.md"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return filepath.Dir(found[0])
}

// TestEvidenceOfAHang has the processes of the run, its dumps, and what was logged.
func TestEvidenceOfAHang(t *testing.T) {
	cfg, dumps := waitingConfig(t), t.TempDir()
	cfg.Evidence.FlightRecorder = []string{filepath.Join(dumps, "trace_rank_*")}
	require.NoError(t, os.WriteFile(filepath.Join(dumps, "trace_rank_0"), []byte("new"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dumps, "trace_rank_<b>"), []byte("new"), 0o600))
	// Anybody may write there.
	for _, hostile := range []string{"trace_rank_" + strings.Repeat("x", 240), "trace_rank_\n## Forged"} {
		require.NoError(t, os.WriteFile(filepath.Join(dumps, hostile), nil, 0o600))
	}
	old := filepath.Join(dumps, "trace_rank_1")
	require.NoError(t, os.WriteFile(old, []byte("old"), 0o600))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dumps, "trace_rank_2")))
	third, other := rank(t, "run-7", 3), rank(t, "run-8", 4)

	w := newWorld(t, cfg)
	xid := plog.NewLogs()
	warning := xid.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	warning.SetSeverityNumber(plog.SeverityNumberError)
	warning.Body().SetStr("XID 79: the GPU has fallen off the bus; password=hunter2secret")
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), xid))
	// The evidence of ever more hangs is refused.
	defer shared.StateOf(&w.host).PublishNotices("ml_guard", func() []shared.Notice {
		return []shared.Notice{{Key: "a", What: "Spans", Why: "Too many come.", Count: 7}, {Key: "b", What: "Nothing", Why: "All is well."}}
	})()
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), hung("run-7", mlattr.ProblemBegan)))
	folder := bundle(t, cfg)

	report := text(t, folder, "report.md")
	assert.Contains(t, report, "- ml_guard: Spans (7). Too many come.\n")
	assert.NotContains(t, report, "All is well")
	assert.Regexp(t, `^# Run run-7 looks hung: rank 2 is missing in all_reduce 17\.\n`, report)
	assert.Contains(t, report, "Next: py-spy dump")
	assert.Contains(t, report, "- GPUs wait for each other\n")
	assert.Regexp(t, `process `+strconv.Itoa(third)+` \(sleep\), rank 3: 1 of its threads sleeping`, report)
	assert.NotContains(t, report, "process "+strconv.Itoa(other)+" ")
	assert.Equal(t, "new", text(t, folder, "dump-0-trace_rank_0"))
	assert.NotContains(t, text(t, folder, "report.md"), "Forged")
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 5, "neither the dump of an earlier hang nor a link")
	page := text(t, folder, "report.html")
	assert.Contains(t, page, "<pre># Run run-7 looks hung")
	assert.Contains(t, page, "trace_rank_&lt;b&gt;, 3 bytes")
	log := text(t, folder, "log.txt")
	assert.Contains(t, log, "XID 79")
	assert.NotContains(t, log, "hunter2secret")
	g := groups(t, cfg)
	require.Len(t, g, 1)
	assert.Equal(t, "hang", g[0].Kind)
	w.shutdown()
	assert.EqualValues(t, 1, w.count("written"))
}

// TestEvidenceOfTheHost has what its links have counted, and which processes wait for its disks.
func TestEvidenceOfTheHost(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.Evidence.RootPath = hosttree.Write(t, "proc/77/cgroup = 0::/", "proc/77/stat = 77 (cp) D 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0",
		"proc/77/task/77/stat = 77 (cp) D 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0", "proc/77/task/77/wchan = nfs_wait_bit_killable")
	w := newWorld(t, cfg)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), hung("run-6", mlattr.ProblemBegan)))
	report := text(t, bundle(t, cfg), "report.md")
	for _, line := range []string{
		"port mlx5_0/1: up, 400 Gbit/s, 1234567 port_xmit_wait",
		"port mlx5_1/1: down, 2.5 Gbit/s, 3 link_downed, 9 local_ack_timeout_err, 17 out_of_sequence, 5 packet_seq_err, 1204 symbol_error",
		"PCIe device 0000:19:00.0: 16.0 GT/s PCIe x8, at most 32.0 GT/s PCIe x16, 42 correctable, 1 nonfatal",
		"PCIe device 0000:39:00.0: unknown, at most unknown",
		"file system /mnt/home (nfs4): answers",
		"process 77 (cp): 1 of its threads uninterruptible wait (D) in nfs_wait_bit_killable",
	} {
		assert.Contains(t, report, "\n- "+line+"\n")
	}
}

// TestEvidenceWithoutContent remembers no text of a log record.
func TestEvidenceWithoutContent(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.CaptureContent = false
	w := newWorld(t, cfg)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), mean().logs(plog.SeverityNumberError)))
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), hung("run-5", mlattr.ProblemBegan)))
	assert.Empty(t, w.logs.Shared.hangs.lines)
	assert.Contains(t, text(t, bundle(t, cfg), "report.md"), "# Run run-5 ")
}

// TestEvidenceOfAHungRank has the processes with a rank, where none has an id of the run.
func TestEvidenceOfAHungRank(t *testing.T) {
	cfg := waitingConfig(t)
	pid := rank(t, "elsewhere", 5)
	w := newWorld(t, cfg)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), hung("a hash", mlattr.ProblemBegan)))
	report := text(t, bundle(t, cfg), "report.md")
	assert.Contains(t, report, "None has an id of the run")
	assert.Contains(t, report, "process "+strconv.Itoa(pid)+" (sleep), rank 5")
}

// TestNoEvidenceWithoutAHang gathers nothing of what ends, of other problems, and of what others send.
func TestNoEvidenceWithoutAHang(t *testing.T) {
	cfg := waitingConfig(t)
	w := newWorld(t, cfg)
	slow := hung("run", mlattr.ProblemBegan)
	slow.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr(mlattr.Problem, mlattr.ProblemSlow)
	failed := hung("run", mlattr.ProblemBegan)
	of := failed.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
	of.PutStr(mlattr.Problem, mlattr.ProblemRunFailed)
	of.PutStr(mlattr.ExceptionMessage, "CUDA error")
	others := hung("run", mlattr.ProblemBegan)
	others.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetEventName("app.event")
	for _, ld := range []plog.Logs{hung("run", mlattr.ProblemEnded), hung("run", mlattr.ProblemUpdated), slow, others, failed} {
		require.NoError(t, w.logs.ConsumeLogs(t.Context(), ld))
	}
	stranger := client.NewContext(t.Context(), client.Info{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4317}})
	require.NoError(t, w.logs.ConsumeLogs(stranger, hung("run", mlattr.ProblemBegan)))
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), hung("last", mlattr.ProblemBegan)))
	w.pass(10 * time.Second)
	assert.Contains(t, text(t, bundle(t, cfg), "report.md"), "# Run last ")
}
