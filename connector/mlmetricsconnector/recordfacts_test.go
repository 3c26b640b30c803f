package mlmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
)

// assertFacts asserts what the attributes of a record say, as text; "" is an attribute
// that is absent.
func assertFacts(t *testing.T, record plog.LogRecord, facts map[string]string) {
	t.Helper()
	for key, want := range facts {
		got := ""
		if v, ok := record.Attributes().Get(key); ok {
			got = v.AsString()
		}
		assert.Equal(t, want, got, key)
	}
}

// A hang says the last step and when it was, which rank finished what last and where, what
// the GPUs do, the last checkpoint, which process to look at, and whose the GPUs are.
func TestFactsOfAHang(t *testing.T) {
	w := newWorld(t, 4)
	w.stated["process.pid"] = 7
	w.gpu = func(rank int, g *gpuMetrics) { g.index, g.user = int64(rank%2), "1001" }
	w.step(t, 30)
	stepped := clockOf(w.clock)
	w.send(t, 0, "checkpoint", w.clock.Add(-time.Second), w.clock, nil)
	w.clock = w.clock.Add(2 * time.Second)
	for rank := range 4 {
		w.send(t, rank, "data_load", w.clock.Add(-time.Second), w.clock, nil)
	}
	loaded := clockOf(w.clock)
	for rank := range 3 {
		w.send(t, rank, "forward", w.clock, w.clock.Add(time.Second), nil)
	}
	w.gpu = func(rank int, g *gpuMetrics) {
		g.utilization, g.power = 1, 200
		g.index, g.user, g.rank, g.pid = int64(rank%2), "1001", int64(rank), int64(4240+rank)
	}
	w.wait(t, 10*time.Minute)
	hung := w.only(t, "looks_hung")
	assertFacts(t, hung, map[string]string{
		"ml.problem.evidence": `["last step 30 at ` + stepped + `","rank 3 (n1, GPU 1) last finished data_load at ` + loaded +
			`","3 ranks last finished forward","last checkpoint at ` + stepped +
			`","confirmed by 4 GPUs that are busy at 100 % and 200 W, up to 588 W before: they wait for another GPU"]`,
		"ml.problem.next": "See what rank 3 (n1, GPU 1) does: the others may wait for it. Run py-spy dump with its process id 4243 on n1.",
		"ml.rank.global":  "3", "host.name": "n1", "process.pid": "4243", "nvidia.gpu.index": "1", "user.id": "1001",
		"ml.problem.gpu.ids": `["n0/GPU-0","n0/GPU-1","n1/GPU-2","n1/GPU-3"]`, "ml.problem.gpus": "4",
	})
}

// Without a rank that is apart, the first one is an example; the process id is the one that
// it states itself, if its host says none.
func TestWhichProcessToLookAt(t *testing.T) {
	for name, tt := range map[string]struct {
		ranks int
		pid   any
		next  string
		fact  string
	}{
		"one that states its process": {1, 7, "See what the process waits for. Run py-spy dump with its process id 7 on n0.", "7"},
		"one of several":              {2, 7, "See what each rank waits for, for example rank 0 (n0). Run py-spy dump with its process id 7 on n0.", "7"},
		"unknown":                     {1, nil, "See what the process waits for. Find its process id on n0, then run py-spy dump with it.", ""},
		"none":                        {1, -1, "See what the process waits for. Find its process id on n0, then run py-spy dump with it.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.ranks)
			if tt.pid != nil {
				w.stated["process.pid"] = tt.pid
			}
			w.step(t, 30)
			w.gpu = func(rank int, g *gpuMetrics) {
				g.utilization, g.power, g.index = 1, 90, int64(rank)
			}
			w.wait(t, 10*time.Minute)
			assertFacts(t, w.only(t, "looks_hung"), map[string]string{
				"ml.problem.next": tt.next, "process.pid": tt.fact, "ml.rank.global": "",
			})
		})
	}
}

// A failed GPU says what the driver reports and asks for.
func TestFactsOfAFailedGPU(t *testing.T) {
	for action, next := range map[int64]string{
		0: "Drain the host, and find out what the driver reports: nvidia-smi -q.",
		1: "The driver asks for a reset. Stop what uses the GPU, then reset it.",
		4: "The driver asks to drain and reset the GPU. Let its run end, then reset it.",
		9: "Drain the host, and find out what the driver reports: nvidia-smi -q.",
	} {
		w := newWorld(t, 0)
		w.read(t, gpuMetrics{host: "n1", id: "GPU-a", index: 5, memory: 1, user: "1001", failed: true, recovery: action})
		w.emit(t)
		facts := map[string]string{
			"ml.problem.evidence": `["the driver reports the state failed"]`, "ml.problem.next": next,
			"host.name": "n1", "hw.id": "GPU-a", "nvidia.gpu.index": "5", "user.id": "1001", "ml.problem.gpu.ids": `["n1/GPU-a"]`,
		}
		if action == 1 {
			facts["nvidia.gpu.recovery.action"] = "1"
		}
		assertFacts(t, w.only(t, "gpu_failed"), facts)
	}
}

// A restart loop says which attempt and step it has come to.
func TestFactsOfARestartLoop(t *testing.T) {
	w := newWorld(t, 2)
	for attempt := range 4 {
		w.stated["ml.run.attempt"] = attempt
		w.step(t, 3)
	}
	assertFacts(t, w.only(t, "restart_loop"), map[string]string{
		"ml.problem.evidence": `["attempt 4","step 10"]`, "ml.problem.value": "4", "ml.problem.unit": "{attempt}",
		"ml.problem.next": "Read why the last attempt ended: the log of the launcher, and the failures of the run.",
	})
}

// A slow run says how long its steps take, which phase grew and on which ranks, why clocks
// are lowered, and how many GPUs it loses.
func TestFactsOfASlowRun(t *testing.T) {
	w := newWorld(t, 2)
	w.gpu = func(_ int, g *gpuMetrics) { g.throttled = "sw_power_cap" }
	w.step(t, 200)
	w.load = func(int) time.Duration { return 6 * time.Second }
	w.step(t, 60)
	assertFacts(t, w.only(t, "slow"), map[string]string{
		"ml.problem.evidence": `["15 s a step, usually 10 (+50 %)","data_load 1 → 6 s, 2 of 2 ranks","clocks are lowered: sw_power_cap"]`,
		"ml.problem.gpu.ids":  `["n0/GPU-0","n0/GPU-1"]`,
	})
}

// GPUs of one workload that are held idle say so together: how much memory is held, and
// since when nothing is done. Those of another one are not among them.
func TestFactsOfIdleGPUs(t *testing.T) {
	w := newWorld(t, 0)
	began := w.clock
	for range 40 {
		for _, id := range []string{"GPU-a", "GPU-b", "GPU-c"} {
			g := gpuMetrics{host: "n1", id: id, memory: 1, used: 61 << 30, limit: 80 << 30, user: "1003"}
			if id == "GPU-c" {
				g.user, g.run = "1004", "run-c"
			}
			w.read(t, g)
		}
		w.emit(t)
		w.clock = w.clock.Add(time.Minute)
	}
	idle := w.found()["held_idle"]
	require.Len(t, idle, 3)
	for _, record := range idle {
		facts := map[string]string{
			"ml.problem.evidence": `["2 × 61.0 GiB held","2 GPUs at 0 % since ` + clockOf(began) + `"]`,
			"ml.problem.next":     "Ask the owner to free these GPUs.", "user.id": "1003", "ml.problem.gpus": "1",
		}
		if textOf(t, record, "hw.id") == "GPU-c" {
			facts["ml.problem.evidence"] = `["61.0 GiB held","1 GPU at 0 % since ` + clockOf(began) + `"]`
			facts["user.id"], facts["ml.run.id"], facts["service.name"] = "1004", "run-c", "trainer"
		}
		assertFacts(t, record, facts)
	}
}

// A service that fails says how much of what fails, how much usually does, and which version.
func TestFactsOfAFailingService(t *testing.T) {
	w := newWorld(t, 0)
	send := func(version string, n int, class string) {
		for range n {
			w.version = version
			w.request(t, "agent", class)
		}
	}
	send("1.8.1", 500, "")
	w.clock = w.clock.Add(time.Hour)
	send("1.8.1", 80, "")
	send("1.8.2", 20, "ToolTimeout")
	w.emit(t)
	assertFacts(t, w.only(t, "failing"), map[string]string{
		"ml.problem.evidence": `["12 of the last 12 requests to models failed, usually 0 %","mostly version 1.8.2","version 1.8.1: 0 of its last 80","version 1.8.2: 20 of its last 20"]`,
		"service.name":        "agent", "ml.problem.unit": "1",
	})
}

func clockOf(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }
