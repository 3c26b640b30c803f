package model_test

import (
	"fmt"
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

// gpu adds a value of a GPU's series.
func (w *world) gpu(metric series.Series, id string, value float64, edit func(*series.Point)) {
	p := series.Point{Series: metric, Update: series.Update{Value: value}, GPU: &series.Device{Index: id}}
	p.Labels.Host, p.Labels.GPU = "h", id
	if edit != nil {
		edit(&p)
	}
	w.ApplyPoints([]series.Point{p})
}

func own(at int, text string) func(*series.Point) {
	return func(p *series.Point) { p.Labels.Own[at] = text }
}

func (w *world) problem(kind, id string, ago time.Duration) {
	w.gpu(series.Problem, id, float64(w.now.Add(-ago).Unix()), own(0, kind))
}

func TestActivities(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, id := range []string{"0", "1", "2", "3", "4", "5"} {
		w.gpu(series.GPUUtilization, id, 0, nil)
	}
	w.gpu(series.GPUWorkload, "1", 1<<30, own(4, "1001"))
	w.gpu(series.GPUUtilization, "2", 0.5, nil)
	w.gpu(series.GPUStatus, "3", 1, own(0, "failed"))
	w.problem(mlattr.ProblemHeldIdle, "4", time.Hour)
	w.gpu(series.GPUWorkload, "5", 1<<30, func(p *series.Point) { p.Labels.Run = "r" })
	w.span(func(in *input.Span) { in.Source.Host = "h" })
	w.point(series.Problem, "r", float64(w.now.Unix()), mlattr.ProblemLooksHung)
	s := w.state()
	var got []string
	for _, g := range s.GPUs {
		got = append(got, g.Activity)
	}
	assert.Equal(t, []string{"free", "working", "working", "failed", "held_idle", "looks_hung"}, got)
	assert.Equal(t, map[string]int{"free": 1, "working": 2, "failed": 1, "held_idle": 1, "looks_hung": 1}, s.Collector.GPUs)
	assert.True(t, s.GPUs[4].HeldIdle)
	assert.Equal(t, []string{s.GPUs[5].Key}, s.Runs[0].GPUKeys)
}

// A MIG device is a row and counts for its GPU.
func TestMIGDevices(t *testing.T) {
	w := newWorld(input.Settings{})
	part := func(p *series.Point) { p.GPU.Parent = "0" }
	w.gpu(series.GPUUtilization, "0", 0, nil)
	w.gpu(series.GPUUtilization, "0a", 0, part)
	w.gpu(series.GPUUtilization, "0b", 0.5, part)
	s := w.state()
	assert.Len(t, s.GPUs, 3)
	assert.Equal(t, map[string]int{"working": 1}, s.Collector.GPUs)
}

func TestHolders(t *testing.T) {
	w := newWorld(input.Settings{Owners: map[string]string{"1001": "ada", "train-0": "team-x"}})
	tests := map[string]struct {
		edit func(*series.Point)
		want api.Holder
	}{
		"a user":       {own(4, "1001"), api.Holder{Name: "user 1001", Owner: "ada"}},
		"another user": {own(4, "7"), api.Holder{Name: "user 7", Owner: "uid 7"}},
		"a user's name": {func(p *series.Point) { p.Labels.Own[4], p.Labels.Own[7] = "7", "grace" },
			api.Holder{Name: "user grace", Owner: "grace"}},
		"a user's name, and a configured one": {func(p *series.Point) { p.Labels.Own[4], p.Labels.Own[7] = "1001", "alovelace" },
			api.Holder{Name: "user 1001", Owner: "ada"}},
		"a user's name that was removed": {func(p *series.Point) { p.Labels.Own[4], p.Labels.Own[7] = "7", "[text: 5 bytes]" },
			api.Holder{Name: "user 7", Owner: "uid 7"}},
		"a job":       {own(0, "48211"), api.Holder{Name: "slurm job 48211"}},
		"a container": {own(3, "0123456789abcdef"), api.Holder{Name: "container 0123456789ab"}},
		"a pod": {func(p *series.Point) { p.Labels.Own[1], p.Labels.Own[2] = "ml", "train-0" },
			api.Holder{Name: "pod ml/train-0", Owner: "team-x"}},
		"a service": {own(6, "llm"), api.Holder{Service: "llm"}},
		"a run nobody knows": {func(p *series.Point) { p.Labels.Run, p.Labels.Rank, p.Labels.Own[5] = "x", "3", "rank" },
			api.Holder{RunID: "x", Rank: "3", Join: "rank"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.gpu(series.GPUMemoryUsed, name, 100, nil)
			w.gpu(series.GPUWorkload, name, 60, tt.edit)
			w.gpu(series.GPUWorkload, name, 30, nil) // of unknown processes
			for _, g := range w.state().GPUs {
				if g.ID == name {
					memory := 60.0
					tt.want.Memory = &memory
					assert.Equal(t, []api.Holder{tt.want}, g.Holders)
					assert.InDelta(t, 40, *g.MemoryUnattributed, 0)
				}
			}
		})
	}
}

// A workload that the last reading does not have has ended, and so has a value.
func TestAReadingEndsWhatItHasNot(t *testing.T) {
	w := newWorld(input.Settings{})
	w.gpu(series.GPUWorkload, "0", 60, own(4, "1001"))
	w.gpu(series.GPUUtilization, "0", 1, nil)
	require.Len(t, w.state().GPUs[0].Holders, 1)
	w.now = w.now.Add(10 * time.Second)
	w.gpu(series.GPUPower, "0", 70, nil)
	g := w.state().GPUs[0]
	assert.Empty(t, g.Holders)
	assert.Nil(t, g.Utilization)
	assert.InDelta(t, 70, *g.Power, 0)
}

// A value that comes every 2 s makes no other value old. What is read every 10 s ends
// when its next reading is left out.
func TestSeriesHaveReadingsOfTheirOwn(t *testing.T) {
	for _, often := range []series.Series{series.GPUMemoryLimit, series.GPUPower, series.GPUStatus, series.GPUTemperature} {
		w := newWorld(input.Settings{})
		w.span(func(in *input.Span) { in.Source.Host = "h" })
		for n := range 30 {
			if n%5 == 0 {
				w.gpu(series.GPUWorkload, "0", 60, func(p *series.Point) { p.Labels.Run = "r" })
				w.gpu(series.GPUUtilization, "0", 1, nil)
			}
			w.gpu(often, "0", 1, own(0, "ok"))
			if s := w.state(); n > 5 {
				require.Len(t, s.GPUs[0].Holders, 1, n)
				require.NotNil(t, s.GPUs[0].Utilization, n)
				require.Len(t, s.Runs[0].GPUKeys, 1, n)
			}
		}
		for range 5 {
			w.gpu(often, "0", 1, own(0, "ok"))
			w.state()
		}
		assert.Empty(t, w.state().GPUs[0].Holders)
		assert.Nil(t, w.state().GPUs[0].Utilization)
	}
}

// The user of a run is that of its own workloads, not of another service's with its id.
func TestTheUserOfARunThatTwoServicesShare(t *testing.T) {
	w := newWorld(input.Settings{})
	for user, service := range map[string]string{"1": "client", "2": "server"} {
		w.span(func(in *input.Span) { in.Source.Service, in.Source.Host = service, "h" })
		w.gpu(series.GPUWorkload, "0", 60, func(p *series.Point) { p.Labels.Run, p.Labels.Own[4], p.Labels.Own[6] = "r", user, service })
	}
	for _, r := range w.state().Runs {
		assert.Equal(t, map[string]string{"client": "uid 1", "server": "uid 2"}[r.Service], r.Owner)
	}
}

// Two runs of one id are a program and its server. The GPU belongs to the one on
// its host.
func TestARunThatTwoServicesShare(t *testing.T) {
	w := newWorld(input.Settings{})
	w.span(func(in *input.Span) { in.Source.Service, in.Source.Host = "client", "laptop" })
	w.span(func(in *input.Span) { in.Source.Service, in.Source.Host = "server", "h" })
	w.gpu(series.GPUWorkload, "0", 60, func(p *series.Point) { p.Labels.Run = "r" })
	s := w.state()
	require.Len(t, s.Runs, 2)
	assert.Equal(t, "server", s.GPUs[0].Holders[0].Service)
	assert.Empty(t, s.Runs[0].GPUKeys)
	assert.Len(t, s.Runs[1].GPUKeys, 1)
}

// The GPUs that one holder keeps idle are one problem, those of another host or
// holder are others.
func TestHeldIdleOfOneHolder(t *testing.T) {
	w := newWorld(input.Settings{})
	for i := range 6 {
		id := strconv.Itoa(i)
		user := "1"
		if i == 5 {
			user = "2"
		}
		w.gpu(series.GPUWorkload, id, 1<<30, own(4, user))
		w.gpu(series.GPUMemoryUsed, id, 1<<30, nil)
		if i != 3 {
			w.problem(mlattr.ProblemHeldIdle, id, time.Hour)
			w.record(input.Record{
				ID: id, Kind: mlattr.ProblemHeldIdle, Subject: input.Subject{Host: "h", GPU: id}, Onset: w.now.Add(-time.Hour), Holder: input.Workload{UserID: user},
				Evidence: []string{map[string]string{"1": "4", "2": "1"}[user] + " × 1.0 GiB held"},
			})
		}
	}
	needs := w.state().Needs
	require.Len(t, needs, 2)
	assert.Equal(t, "h: GPU 0-2, 4", needs[0].Subject)
	assert.InDelta(t, 4, *needs[0].GPUHours, 0.01)
	assert.Equal(t, "uid 1", needs[0].Owner)
	assert.Equal(t, "h: GPU 5", needs[1].Subject)
	assert.Equal(t, []string{"4 × 1.0 GiB held"}, needs[0].Evidence)
}

// A failed GPU that two runs held is one problem.
func TestAFailedGPUOfTwoRuns(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, run := range []string{"a", "b"} {
		w.gpu(series.Problem, "GPU-0", float64(w.now.Unix()), func(p *series.Point) { p.Labels.Own[0], p.Labels.Run = mlattr.ProblemGPUFailed, run })
	}
	w.gpu(series.GPUStatus, "GPU-0", 1, own(0, "failed"))
	for _, run := range []string{"a", "b"} {
		w.record(input.Record{
			ID: run, Kind: mlattr.ProblemGPUFailed, Subject: input.Subject{Run: run, Host: "h", GPU: "GPU-0"}, Advice: input.Advice{Recovery: 4}, Evidence: []string{"the driver reports the state failed"},
		})
	}
	w.ApplyEvents([]input.Event{{Host: "h", GPU: "GPU-0", XID: &api.XID{Code: "79", Message: "fell off the bus", Time: w.now}}})
	needs := w.state().Needs
	require.Len(t, needs, 1)
	assert.Equal(t, []string{"the driver reports the state failed", "XID 79 fell off the bus at 03:04:05 UTC"}, needs[0].Evidence)
	assert.Equal(t, "sudo nvidia-smi --gpu-reset -i GPU-0", needs[0].Command)
}

// The commands are of numbers and an id that the driver gives.
func TestCommands(t *testing.T) {
	index := int64(5)
	for command, r := range map[string]input.Record{
		"py-spy dump --pid 4001": {Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Run: "r"}, Advice: input.Advice{PID: 4001, GPUIndex: &index}},
		"nvidia-smi -i 5 --query-compute-apps=pid,name,used_memory --format=csv": {Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Run: "r"}, Advice: input.Advice{GPUIndex: &index}},
		"nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv":      {Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Run: "r"}},
		"sudo nvidia-smi --gpu-reset -i GPU-0a":                                  {Kind: mlattr.ProblemGPUFailed, Subject: input.Subject{GPU: "GPU-0a"}, Advice: input.Advice{Recovery: 1}},
	} {
		w := newWorld(input.Settings{})
		add := func() string {
			w.ApplyPoints([]series.Point{{Series: series.Problem, Update: series.Update{Value: float64(w.now.Unix())}, Labels: series.Labels{
				Run: r.Run, Host: map[bool]string{true: "h"}[r.GPU != ""], GPU: r.GPU, Own: [series.MaxOwn]string{r.Kind},
			}}})
			r.Host = map[bool]string{true: "h"}[r.GPU != ""]
			w.record(r)
			needs := w.state().Needs
			require.NotEmpty(t, needs)
			return needs[0].Command
		}
		assert.Equal(t, command, add())
		if r.Kind == mlattr.ProblemGPUFailed {
			r.Recovery = 2
			assert.Empty(t, add(), "the driver asks for a reboot")
			w = newWorld(input.Settings{})
			r.Recovery, r.GPU = 1, "GPU-0; reboot"
			assert.Empty(t, add(), "no id of a driver")
		}
	}
}

// The user of a service is the one that its spans name, else that of the GPU
// workloads that name it, if they have one user.
func TestTheOwnerOfAService(t *testing.T) {
	for name, tt := range map[string]struct {
		users []string
		spans string
		owner string
	}{
		"workloads":      {users: []string{"1001", "1001"}, owner: "uid 1001"},
		"several users":  {users: []string{"1001", "1002"}},
		"spans":          {users: []string{"1001"}, spans: "mary", owner: "mary"},
		"nobody is sent": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(input.Settings{})
			w.fails("E", "", 1)
			w.span(func(in *input.Span) { in.Source = &input.Source{Service: "agent", User: tt.spans} })
			for i, user := range tt.users {
				w.gpu(series.GPUWorkload, strconv.Itoa(i), 60, func(p *series.Point) { p.Labels.Own[4], p.Labels.Own[6] = user, "agent" })
			}
			w.failing(w.now)
			assert.Equal(t, tt.owner, w.state().Needs[0].Owner)
		})
	}
}

func TestHosts(t *testing.T) {
	w := newWorld(input.Settings{})
	for i := range 3 {
		w.span(func(in *input.Span) { in.Source.Host = fmt.Sprint("h", i) })
		w.now = w.now.Add(40 * time.Second)
	}
	c := w.state().Collector
	assert.Equal(t, 3, c.Hosts)
	assert.Equal(t, 1, c.HostsReporting)
	assert.Empty(t, c.HostsWithoutGPU, "no GPU is known at all")
	w.gpu(series.GPUUtilization, "a", 1, func(p *series.Point) { p.Labels.Host = "h1" })
	assert.Equal(t, []string{"h0", "h2"}, w.state().Collector.HostsWithoutGPU)
	w.now = w.now.Add(13 * time.Hour)
	w.span(func(in *input.Span) { in.Source.Host = "new" })
	s := w.state()
	assert.Equal(t, 1, s.Collector.Hosts)
	assert.Len(t, s.Runs, 1)
}
