package model_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// fails adds failed requests of the service agent.
func (w *world) fails(class, fingerprint string, n int) {
	for i := range n {
		w.span(func(in *input.Span) {
			in.Source = &input.Source{Service: "agent"}
			in.ID, in.Failed, in.Class, in.Fingerprint = [8]byte{byte(i), 9}, true, class, fingerprint
		})
	}
}

// failing reports that the service agent fails since a time.
func (w *world) failing(since time.Time) {
	p := series.Point{Series: series.Problem, Update: series.Update{Value: float64(since.Unix())}}
	p.Labels.Service, p.Labels.Own[0] = "agent", mlattr.ProblemFailing
	w.ApplyPoints([]series.Point{p})
}

// The command is that of the class that failed most since the onset, and not
// about what failed last or before.
func TestWhatToDoAboutFailures(t *testing.T) {
	w := newWorld(input.Settings{})
	w.fails("ConnectionError", "c", 300)
	w.now = w.now.Add(time.Minute)
	onset := w.now
	w.fails("ToolTimeout", "t", 200)
	w.now = w.now.Add(5 * time.Second)
	w.fails("ConnectionError", "c", 2)
	w.failing(onset)
	need := func() api.Need {
		needs := w.state().Needs
		require.Len(t, needs, 1)
		return needs[0]
	}
	assert.Contains(t, need().Evidence, "since the onset: ToolTimeout 200×, ConnectionError 2×")
	assert.Empty(t, need().Command)

	w.SetFailures([]api.Failure{{Key: "c", Command: "python3 c.py", Replays: true}, {Key: "t", Command: "python3 t.py"}})
	assert.Equal(t, "python3 t.py", need().Command)
}

// A failure without a command says why.
func TestWhyNoReproduction(t *testing.T) {
	for _, reads := range []bool{true, false} {
		w := newWorld(input.Settings{Reproductions: reads})
		w.fails("E", "f", 1)
		w.fails("Other", "", 1)
		why := func(class string) string {
			for _, f := range w.state().Failures {
				if f.Class == class {
					return f.Why
				}
			}
			return "no failure"
		}
		if !reads {
			assert.Contains(t, why("E"), "set reproductions of ml_view")
			continue
		}
		assert.Contains(t, why("E"), "not yet written")
		assert.Contains(t, why("Other"), "none; repro_gen chose another span")
		w.now = w.now.Add(time.Minute)
		assert.Contains(t, why("E"), "not in the page's directory")
		w.SetFailures([]api.Failure{{Key: "f", Command: "python3 f.py", Why: "the call was not recorded"}})
		assert.Equal(t, "the call was not recorded", why("E"))
	}
}

// The failures since an onset are counted exactly while they are new.
func TestFailuresSinceTheOnset(t *testing.T) {
	for _, before := range []int{0, 1, 63, 64, 65, 5000} {
		w := newWorld(input.Settings{})
		w.fails("E", "", before)
		w.now = w.now.Add(time.Minute)
		w.fails("E", "", 7)
		w.failing(w.now)
		assert.Contains(t, strings.Join(w.state().Needs[0].Evidence, "; "), "E 7×", before)
	}
}

// Whatever the record of a problem says is on its row, with what only the page has, and
// stays there after a restart of the page.
func TestTheRowHasWhatTheRecordSays(t *testing.T) {
	value, usual, number, index := 3.1, 1.9, 4.0, int64(5)
	w := newWorld(input.Settings{Owners: map[string]string{"1001": "ada"}})
	for _, id := range []string{"GPU-0", "GPU-1"} {
		w.gpu(series.GPUWorkload, id, 60<<30, own(4, "7")) // another one has them now
	}
	w.span(func(in *input.Span) { in.Failed, in.Class, in.Fact.Phase = true, "torch.OutOfMemoryError", "forward" })
	w.ApplyEvents([]input.Event{{Host: "h", GPU: "GPU-0", XID: &api.XID{Code: "79", Message: "fell off the bus", Time: w.now}}})
	holder := input.Workload{Job: "815", UserID: "1001"}
	onset := w.now.Add(-time.Hour)
	records := []input.Record{
		{ID: "1", Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Service: "trainer", Run: "r", Host: "h"}, Advice: input.Advice{PID: 4242, GPUIndex: &index, Next: "See what rank 2 does."},
			Evidence: []string{"last step 40 at 03:03:56 UTC", "rank 2 (gpu-02, GPU 0) last finished data_load at 03:03:53 UTC"}},
		{ID: "2", Kind: mlattr.ProblemSlow, Subject: input.Subject{Service: "trainer", Run: "r"}, Value: &value, Usual: &usual, Unit: "s",
			Evidence: []string{"3.1 s a step, usually 1.9 (+63 %)"}, Excluded: []string{"checkpoint"}, Advice: input.Advice{Next: "Look at the input."}},
		{ID: "3", Kind: mlattr.ProblemRestartLoop, Subject: input.Subject{Service: "trainer", Run: "r"}, Value: &value, Unit: "{attempt}", Evidence: []string{"attempt 5"}, Advice: input.Advice{Next: "Read the log."}},
		{ID: "4", Kind: mlattr.ProblemGPUFailed, Subject: input.Subject{Run: "r", Host: "h", GPU: "GPU-0"}, Evidence: []string{"the driver reports the state failed"}, Advice: input.Advice{Recovery: 1, Next: "Reset it."}},
		{ID: "5", Kind: mlattr.ProblemHeldIdle, Subject: input.Subject{Run: "r", Host: "h", GPU: "GPU-1"}, Evidence: []string{"61.0 GiB held"}, Advice: input.Advice{Next: "Ask the owner."}},
	}
	report := func() {
		for _, r := range records {
			p := series.Point{Series: series.Problem, Update: series.Update{Value: float64(onset.Unix()), Time: w.now.UnixNano()}}
			p.Labels.Own[0] = r.Kind
			if r.GPU != "" {
				p.Labels.Host, p.Labels.GPU, p.Labels.Run = r.Host, r.GPU, map[bool]string{true: "r"}[r.Kind == mlattr.ProblemGPUFailed]
			} else {
				p.Labels.Service, p.Labels.Run = r.Service, r.Run
			}
			w.ApplyPoints([]series.Point{p})
		}
	}
	report()
	for _, r := range records {
		r.Onset, r.Holder, r.GPUs, r.Held = onset, holder, &number, []string{"h/GPU-0", "h/GPU-1", "h/unknown"}
		w.record(r)
	}
	rows := func() map[string]api.Need {
		rows := make(map[string]api.Need)
		for _, n := range w.state().Needs {
			rows[n.Kind] = n
		}
		return rows
	}
	before := rows()
	require.Len(t, before, 5)
	for _, n := range before {
		assert.Equal(t, []string{"ada", "r", "slurm job 815"}, []string{n.Owner, n.RunID, n.Job}, n.Kind)
		assert.NotEmpty(t, n.Run, n.Kind)
		assert.Len(t, n.GPUs, map[bool]int{true: 1, false: 2}[n.Kind == mlattr.ProblemGPUFailed || n.Kind == mlattr.ProblemHeldIdle], n.Kind)
		assert.InDelta(t, map[bool]float64{true: 1, false: 4}[n.Kind == mlattr.ProblemGPUFailed || n.Kind == mlattr.ProblemHeldIdle], *n.GPUHours, 0.01, n.Kind)
	}
	hung := before[mlattr.ProblemLooksHung]
	assert.Equal(t, records[0].Evidence, hung.Evidence)
	assert.Equal(t, []string{"See what rank 2 does.", "py-spy dump --pid 4242"}, []string{hung.Next, hung.Command})
	slow := before[mlattr.ProblemSlow]
	assert.Equal(t, []any{3.1, 1.9, "s"}, []any{*slow.Value, *slow.Usual, slow.Unit})
	assert.Equal(t, []string{"3.1 s a step, usually 1.9 (+63 %)", "without checkpoint"}, slow.Evidence)
	assert.Equal(t, []string{"attempt 5", "last failure torch.OutOfMemoryError in forward at 03:04:05 UTC"}, before[mlattr.ProblemRestartLoop].Evidence)
	failed := before[mlattr.ProblemGPUFailed]
	assert.Equal(t, []string{"the driver reports the state failed", "XID 79 fell off the bus at 03:04:05 UTC"}, failed.Evidence)
	assert.Equal(t, []string{"Reset it.", "sudo nvidia-smi --gpu-reset -i GPU-0"}, []string{failed.Next, failed.Command})
	assert.Equal(t, []string{"61.0 GiB held"}, before[mlattr.ProblemHeldIdle].Evidence)

	data, err := w.Export()
	require.NoError(t, err)
	again := newWorld(input.Settings{Owners: map[string]string{"1001": "ada"}})
	again.now = w.now.Add(time.Minute)
	require.NoError(t, again.Import(data))
	w = again
	report()
	for kind, n := range rows() {
		was := before[kind]
		assert.Equal(t, []any{was.Next, was.Owner, was.RunID, was.Unit}, []any{n.Next, n.Owner, n.RunID, n.Unit}, kind)
		assert.Equal(t, was.Evidence[0], n.Evidence[0], kind)
	}
}
