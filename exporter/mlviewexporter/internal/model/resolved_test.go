package model_test

import (
	"cmp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// A GPU that has failed is that of whoever held it at the onset, as long as the problem
// lasts, and when it is over: the job, the user and the run, although their processes
// are gone, the GPU tells no more than that it has failed, or nothing, and another
// workload has it.
func TestAFailedGPUWhoseHolderIsGone(t *testing.T) {
	for name, run := range map[string]string{"a job": "", "a run": "r"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(input.Settings{Owners: map[string]string{"1000": "ada"}})
			r := input.Record{
				ID: "1", Kind: mlattr.ProblemGPUFailed, Subject: input.Subject{Run: run, Host: "h", GPU: "GPU-0"}, Onset: w.now,
				Holder: input.Workload{Job: "815", UserID: "1000"}, Evidence: []string{"failed"},
			}
			if run != "" {
				r.Service = "trainer"
				w.point(series.RunState, "r", 1, "running")
			}
			w.gpu(series.GPUWorkload, "GPU-0", 1<<30, func(p *series.Point) {
				p.Labels.Run, p.Labels.Own[0], p.Labels.Own[4] = run, "815", "1000"
			})
			problem := func() {
				w.gpu(series.Problem, "GPU-0", float64(r.Onset.Unix()), func(p *series.Point) {
					p.Labels.Own[0], p.Labels.Run, p.Labels.Service = mlattr.ProblemGPUFailed, run, r.Service
				})
			}
			w.gpu(series.GPUStatus, "GPU-0", 1, own(0, "failed"))
			problem()
			w.record(r)
			onset := w.now
			assertHeld := func(n api.Need) {
				t.Helper()
				assert.Equal(t, []string{"ada", run, "h: GPU GPU-0"}, []string{n.Owner, n.RunID, n.Subject})
				assert.Equal(t, onset, n.Since)
				if run == "" {
					assert.Equal(t, "slurm job 815", n.Job)
				} else {
					assert.NotEmpty(t, n.Run)
				}
			}
			for _, after := range []time.Duration{0, 10 * time.Second, 40 * time.Second, 10 * time.Minute, time.Hour, 3 * time.Hour} {
				for w.now.Sub(onset) < after {
					w.now = w.now.Add(min(time.Minute, onset.Add(after).Sub(w.now)))
					problem()
					if after < time.Hour {
						w.gpu(series.GPUStatus, "GPU-0", 1, own(0, "failed"))
					}
				}
				if after == 10*time.Minute {
					w.gpu(series.GPUWorkload, "GPU-0", 1<<30, own(4, "7"))
				}
				s := w.State()
				require.Len(t, s.Needs, 1, after)
				assertHeld(s.Needs[0])
				require.Len(t, s.GPUs, 1)
				assert.Equal(t, "failed", cmp.Or(s.GPUs[0].LastActivity, s.GPUs[0].Activity), "at its last reading")
			}

			r.Stale = w.now.Add(-2 * time.Minute)
			w.record(r)
			s := w.state()
			require.Len(t, s.Needs, 1)
			assertHeld(s.Needs[0])
			assert.Equal(t, r.Stale, *s.Needs[0].NoEvidenceSince)
			assert.InDelta(t, r.Stale.Sub(onset).Hours(), *s.Needs[0].GPUHours, 1e-9)
			assert.Empty(t, s.Resolved)

			w.gpu(series.Problem, "GPU-0", 0, func(p *series.Point) {
				p.Labels.Own[0], p.Labels.Run, p.Labels.Service, p.Gone = mlattr.ProblemGPUFailed, run, r.Service, true
			})
			r.Stale, r.Ended, r.EndReason = time.Time{}, w.now, mlattr.ProblemOver
			w.record(r)
			w.record(r)
			ended := w.now
			s = w.state()
			assert.Empty(t, s.Needs)
			require.Len(t, s.Resolved, 1)
			n := s.Resolved[0]
			assertHeld(n)
			assert.Equal(t, []any{ended, mlattr.ProblemOver}, []any{*n.Ended, n.EndReason})
			assert.Equal(t, []string{"failed"}, n.Evidence)

			data, err := w.Export()
			require.NoError(t, err)
			w.now = w.now.Add(23 * time.Hour)
			assert.Len(t, w.State().Resolved, 1)
			again := newWorld(input.Settings{})
			again.now = w.now
			require.NoError(t, again.Import(data))
			require.NoError(t, again.Import(data))
			require.Len(t, again.state().Resolved, 1, "after a restart")
			assertHeld(again.State().Resolved[0])
			w.now, again.now = w.now.Add(time.Hour), w.now.Add(time.Hour)
			assert.Empty(t, w.State().Resolved, "a day is over")
			assert.Empty(t, again.State().Resolved)
		})
	}
}

// The run, its GPUs and its owner are those of the onset when the run has released
// them.
func TestARunThatHadGPUs(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.RunState, "r", 1, "stalled")
	w.gpu(series.GPUWorkload, "GPU-0", 1<<30, func(p *series.Point) {
		p.Labels.Run, p.Labels.Service, p.Labels.Own[4], p.Labels.Own[6] = "r", "trainer", "1000", "trainer"
	})
	w.point(series.Problem, "r", float64(w.now.Unix()), mlattr.ProblemLooksHung)
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Service: "trainer", Run: "r"}, Held: []string{"h/GPU-0"}, Holder: input.Workload{UserID: "1000"}})
	before := w.state().Needs
	require.Len(t, before, 1)
	require.Len(t, before[0].GPUs, 1)
	assert.Equal(t, "uid 1000", before[0].Owner)
	for range 60 {
		w.now = w.now.Add(10 * time.Second)
		w.point(series.Problem, "r", float64(before[0].Since.Unix()), mlattr.ProblemLooksHung)
		w.gpu(series.GPUWorkload, "GPU-0", 1<<30, own(4, "7"))
	}
	after := w.state().Needs
	require.Len(t, after, 1)
	assert.Equal(t, before[0].GPUs, after[0].GPUs)
	assert.Equal(t, "uid 1000", after[0].Owner)
}

// A GPU that is read as well again does not count as failed, although its problem lasts.
func TestAFailedGPUThatIsWellAgain(t *testing.T) {
	w := newWorld(input.Settings{})
	w.gpu(series.GPUStatus, "GPU-0", 1, own(0, "ok"))
	w.problem(mlattr.ProblemGPUFailed, "GPU-0", time.Minute)
	s := w.state()
	assert.Len(t, s.Needs, 1)
	assert.Equal(t, map[string]int{"free": 1}, s.Collector.GPUs)
}

// A problem without new evidence comes after the others.
func TestStaleProblemsComeLast(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, run := range []string{"a", "b"} {
		w.point(series.Problem, run, float64(w.now.Unix()), mlattr.ProblemLooksHung)
	}
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Service: "trainer", Run: "a"}, Stale: w.now.Add(-time.Hour)})
	runs := func() (ids []string) {
		for _, n := range w.state().Needs {
			ids = append(ids, n.RunID)
		}
		return ids
	}
	assert.Equal(t, []string{"b", "a"}, runs())
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Service: "trainer", Run: "a"}, Onset: w.now.Add(-time.Hour)})
	require.Len(t, runs(), 2)
	assert.Nil(t, w.State().Needs[1].NoEvidenceSince, "there is new one")
}

// However many problems end, the newest are shown, and how many are not.
func TestResolvedProblemsAreBounded(t *testing.T) {
	w := newWorld(input.Settings{})
	for n := range 1500 {
		w.now = w.now.Add(time.Second)
		w.record(input.Record{
			ID: strconv.Itoa(n), Kind: mlattr.ProblemFailing, Subject: input.Subject{Service: "s" + strconv.Itoa(n)}, Ended: w.now, EndReason: mlattr.ProblemNoEvidence,
		})
	}
	s := w.state()
	require.Len(t, s.Resolved, 200)
	assert.Equal(t, "s1499", s.Resolved[0].Service)
	assert.Equal(t, 800, s.Collector.Hidden["resolved"])
}

// TestGPUsThatWereWrongTogetherAreOneRow: four GPUs that somebody held idle are one problem
// to a reader, as long as it lasts and afterwards.
func TestGPUsThatWereWrongTogetherAreOneRow(t *testing.T) {
	w := newWorld(input.Settings{})
	onset := w.now.Add(-time.Hour)
	hours := 1.0
	for _, gpu := range []string{"10", "2", "0", "1"} {
		w.record(input.Record{
			ID: gpu, Kind: mlattr.ProblemHeldIdle, Subject: input.Subject{Host: "n1", GPU: gpu}, Onset: onset, Ended: w.now, EndReason: mlattr.ProblemNoEvidence, GPUHours: &hours,
		})
	}
	w.record(input.Record{ID: "later", Kind: mlattr.ProblemHeldIdle, Subject: input.Subject{Host: "n1", GPU: "3"}, Onset: onset.Add(time.Minute), Ended: w.now, EndReason: mlattr.ProblemNoEvidence})
	var subjects []string
	for _, n := range w.state().Resolved {
		subjects = append(subjects, n.Subject)
		if n.Subject == "n1: GPU 0-2, 10" {
			assert.InDelta(t, 4, *n.GPUHours, 0)
		}
	}
	assert.ElementsMatch(t, []string{"n1: GPU 0-2, 10", "n1: GPU 3"}, subjects)
}
