package mlmetricsconnector

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
)

// restarted is a connector with what another one has kept.
func (r *run) restarted(t *testing.T) (again *run, logs *consumertest.LogsSink) {
	t.Helper()
	data, err := r.connector.Shared.Export()
	require.NoError(t, err)
	again = newRun(t, createDefaultConfig().(*Config))
	again.clock = r.clock
	require.NoError(t, again.connector.Shared.Import(data))
	kept, err := again.connector.Shared.Export()
	require.NoError(t, err)
	assert.Equal(t, string(data), string(kept), "also if it stops before its first emission")
	logs = new(consumertest.LogsSink)
	again.connector.Shared.outlets.Add(logs)
	return again, logs
}

// onsetOf returns the id, the state and the onset of the only record, and whose it is.
func onsetOf(t *testing.T, logs *consumertest.LogsSink) []string {
	t.Helper()
	records := recordsOf(logs, "ml.problem")
	require.Len(t, records, 1)
	text := func(key string) string {
		v, known := records[0].Attributes().Get(key)
		if !known {
			return ""
		}
		return v.AsString()
	}
	return []string{text("ml.problem"), text("ml.problem.id"), text("ml.problem.onset"), text("ml.run.id"), text("slurm.job.id"), text("service.name")}
}

// A problem outlives a restart as it was: its id, its onset, and who had the GPU then.
// It ends when it is over, when its evidence is old, or, as its detector has forgotten
// what it knew, when it has been gone for ten minutes.
// A restart that no launcher counts is one where another process goes on after a gap, or a
// step number has fallen; another process without a gap, and the next epoch, are none.
func TestRestartsThatNobodyCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		gap      time.Duration
		pid      int
		from     int
		attempts int64
	}{
		"another process":               {time.Minute, 8, 101, 2},
		"another process without a gap": {0, 8, 101, 1},
		"a step number that has fallen": {time.Minute, 7, 60, 2},
		"the next epoch":                {time.Minute, 7, 1, 1},
		"a pause":                       {time.Minute, 7, 101, 1},
		"a late step":                   {0, 7, 99, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.stated["process.pid"] = 7
			steps := func(from, n int) {
				for i := range n {
					end := w.clock.Add(time.Second)
					w.send(t, 0, "optimizer", w.clock, end, map[string]any{"ml.step": from + i})
					w.clock = end
				}
			}
			steps(1, 100)
			w.clock = w.clock.Add(tt.gap)
			w.stated["process.pid"] = tt.pid
			steps(tt.from, 20)
			w.emit(t)
			assert.Equal(t, tt.attempts, counters(lastOf(t, w.sink))["ml.run.attempts"])
		})
	}
}

func TestProblemsOutliveARestart(t *testing.T) {
	t.Run("a failed GPU", func(t *testing.T) {
		r := newRun(t, createDefaultConfig().(*Config))
		logs := new(consumertest.LogsSink)
		r.connector.Shared.outlets.Add(logs)
		r.steps(t, 1, time.Second)
		held := gpuReading(gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1, failed: true}, r.clock)
		for m := range metricsOf(held) {
			if m.Name() == "nvidia.gpu.workload.memory.usage" {
				m.Sum().DataPoints().At(0).Attributes().PutStr("slurm.job.id", "815")
			}
		}
		r.metrics(t, held)
		r.after(t, time.Second)
		before := onsetOf(t, logs)
		assert.Equal(t, []string{"gpu_failed", "run-a", "815", "trainer"}, []string{before[0], before[3], before[4], before[5]})

		again, logs := r.restarted(t)
		again.read(t, gpuMetrics{host: "n1", id: "GPU-a", failed: true})
		again.after(t, time.Minute)
		assert.Equal(t, before, onsetOf(t, logs), "its record is sent again")
		for range 30 {
			again.read(t, gpuMetrics{host: "n1", id: "GPU-a", failed: true})
			onsets, _ := problems(t, again.after(t, time.Minute))
			require.Len(t, onsets, 1)
			assert.Contains(t, onsets, "trainer/gpu_failed/GPU-a/n1/run-a")
		}
		assert.Empty(t, recordsOf(logs, "ml.problem"))
	})
	t.Run("a run that hangs", func(t *testing.T) {
		r := newRun(t, createDefaultConfig().(*Config))
		r.gpu = true
		logs := new(consumertest.LogsSink)
		r.connector.Shared.outlets.Add(logs)
		r.steps(t, 3, time.Second)
		r.after(t, 0)
		r.after(t, 6*time.Minute)
		before := onsetOf(t, logs)
		assert.Equal(t, "looks_hung", before[0])

		again, logs := r.restarted(t)
		again.gpu = true
		again.after(t, time.Second)
		assert.Equal(t, before, onsetOf(t, logs))
		for range 60 {
			onsets, _ := problems(t, again.after(t, time.Minute))
			assert.Contains(t, onsets, "trainer/looks_hung/run-a", "it holds its GPUs, and nothing else is known")
		}
		recordsOf(logs, "ml.problem")
		again.steps(t, 1, time.Second)
		assertEnd(t, again.after(t, 0), "trainer/looks_hung/run-a")
	})
	t.Run("a service that is called no more", func(t *testing.T) {
		r := newRun(t, createDefaultConfig().(*Config))
		logs := new(consumertest.LogsSink)
		r.connector.Shared.outlets.Add(logs)
		r.request(t, "agent", "timeout", "timeout", "timeout")
		r.after(t, time.Second)
		before := onsetOf(t, logs)
		again, logs := r.restarted(t)
		again.after(t, 30*time.Minute)
		is, record := stateOf(t, logs)
		assert.Equal(t, "stale", is)
		assert.Equal(t, before[1], textOf(t, record, "ml.problem.id"))
		again.after(t, 30*time.Minute)
		is, record = stateOf(t, logs)
		assert.Equal(t, "ended", is)
		assert.Equal(t, "no_evidence", textOf(t, record, "ml.problem.end.reason"))
	})
	t.Run("a service that answers again", func(t *testing.T) {
		r := newRun(t, createDefaultConfig().(*Config))
		r.request(t, "agent", "timeout", "timeout", "timeout")
		r.after(t, time.Second)
		again, logs := r.restarted(t)
		var ended plog.LogRecord
		states := ""
		for range 12 {
			again.request(t, "agent", "", "")
			again.after(t, time.Minute)
			if is, record := stateOf(t, logs); is != "" {
				states, ended = states+is+" ", record
			}
		}
		assert.True(t, strings.HasSuffix(states, "ended "), states)
		assert.Equal(t, "no_evidence", textOf(t, ended, "ml.problem.end.reason"), "its detector knows too little to say that it is over")
	})
}

// What is damaged is refused, and as many problems are kept as there is room for.
func TestWhatIsKeptIsBounded(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	whole, err := r.connector.Shared.Export()
	require.NoError(t, err)
	require.NoError(t, r.connector.Shared.Import(whole))
	require.Error(t, r.connector.Shared.Import(whole[:len(whole)/2]))

	open := make([]problem.Entry, 1000)
	for i := range open {
		open[i].Kind, open[i].Onset, open[i].Evident = "failing", r.clock, r.clock
		open[i].Subject.Run, open[i].Next = strconv.Itoa(i), strings.Repeat("x", change.MaxKept/1000)
	}
	r.connector.Shared.open.Store(&open)
	data, err := r.connector.Shared.Export()
	require.NoError(t, err)
	assert.Less(t, len(data), 1000, "what changes are compared with is kept in any case")
}
