package mlmetricsconnector

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// inRanks returns the kinds that are reported of a run in which something is planted.
func inRanks(ranks int, plant func(*testing.T, *world)) func(*testing.T) []string {
	return func(t *testing.T) []string {
		w := newWorld(t, ranks)
		plant(t, w)
		return slices.Collect(maps.Keys(w.found()))
	}
}

// usualChat is what the service of inTasks sends before something is planted.
var usualChat = sent{name: "chat", root: true, took: time.Second, attrs: map[string]any{
	"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1", "gen_ai.response.finish_reasons": []any{"stop"},
	"gen_ai.usage.input_tokens": 2000, "gen_ai.usage.output_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 1500,
}}

// inTasks returns the kinds that are reported of a service whose tasks change.
func inTasks(usual sent, unusual ...sent) func(*testing.T) []string {
	return func(t *testing.T) []string {
		r := newRun(t, createDefaultConfig().(*Config))
		logs := new(consumertest.LogsSink)
		r.connector.Shared.outlets.Add(logs)
		require.Empty(t, r.tasks(t, logs, 400, "1", func(int) []sent { return []sent{usual} }))
		return slices.Collect(maps.Keys(r.tasks(t, logs, 120, "1", func(int) []sent { return unusual })))
	}
}

// inChats is inTasks for requests to a model that are altered.
func inChats(alter func(*sent)) func(*testing.T) []string {
	altered := usualChat
	altered.attrs = maps.Clone(usualChat.attrs)
	alter(&altered)
	return inTasks(usualChat, altered)
}

// Each kind of problem has a detector that reports it.
func TestEachKindIsReported(t *testing.T) {
	tool := sent{name: "execute_tool search", took: time.Second, attrs: map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": "{}",
	}}
	slowNowAndThen := func(t *testing.T) []string {
		r := newRun(t, createDefaultConfig().(*Config))
		logs := new(consumertest.LogsSink)
		r.connector.Shared.outlets.Add(logs)
		kinds := r.tasks(t, logs, 1000, "1", func(n int) []sent {
			chat := usualChat
			if n > 700 && n%8 == 0 {
				chat.took = time.Minute
			}
			return []sent{chat}
		})
		return slices.Collect(maps.Keys(kinds))
	}
	failed := func(s sent) sent {
		s.fails = true
		return s
	}
	kinds := map[string]func(*testing.T) []string{
		mlattr.ProblemFailing:          inTasks(usualChat, failed(usualChat)),
		mlattr.ProblemSlowRequests:     inChats(func(s *sent) { s.took = 3 * time.Second }),
		mlattr.ProblemRetryStorm:       inTasks(usualChat, failed(usualChat), failed(usualChat), usualChat),
		mlattr.ProblemToolErrors:       inTasks(tool, failed(tool)),
		mlattr.ProblemTruncated:        inChats(func(s *sent) { s.attrs["gen_ai.response.finish_reasons"] = []any{"length"} }),
		mlattr.ProblemAnswersChanged:   inChats(func(s *sent) { s.attrs["gen_ai.usage.output_tokens"] = 0 }),
		mlattr.ProblemTailLatency:      slowNowAndThen,
		mlattr.ProblemModelSubstituted: inChats(func(s *sent) { s.attrs["gen_ai.response.model"] = "tiny" }),
		mlattr.ProblemCacheCollapsed:   inChats(func(s *sent) { s.attrs["gen_ai.usage.cache_read.input_tokens"] = 0 }),
		mlattr.ProblemCostly:           inChats(func(s *sent) { s.attrs["gen_ai.usage.input_tokens"] = 9000 }),
		mlattr.ProblemThroughputDrop:   inChats(func(s *sent) { s.took = 3 * time.Second }),
		mlattr.ProblemLooping:          inTasks(tool, repeated(tool, 40)...),
	}
	maps.Copy(kinds, kindsOfRuns())
	for _, kind := range mlattr.Problems {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, kinds, kind.Name, "nothing sets it off here")
			assert.Contains(t, kinds[kind.Name](t), kind.Name)
		})
	}
}

// goesSilent has the only host of a run send nothing any more.
func goesSilent(t *testing.T, w *world) {
	w.step(t, 20)
	w.unread = "n0"
	w.wait(t, 6*time.Minute)
}

// kindsOfRuns sets off the kinds of runs, GPUs and hosts.
func kindsOfRuns() map[string]func(*testing.T) []string {
	changing := func(before int, change func(*world), after int) func(*testing.T) []string {
		return inRanks(4, func(t *testing.T, w *world) {
			w.loss = 2
			w.step(t, before)
			change(w)
			w.step(t, after)
		})
	}
	idle := func(_ int, g *gpuMetrics) { g.utilization, g.power = 0, 70 }
	heat := func(_ int, g *gpuMetrics) { g.throttled = "hw_thermal_slowdown" }
	return map[string]func(*testing.T) []string{
		mlattr.ProblemLooksHung: inRanks(4, func(t *testing.T, w *world) {
			w.step(t, 20)
			w.gpu = idle
			w.wait(t, 26*time.Minute)
		}),
		mlattr.ProblemHostSilent: inRanks(2, goesSilent),
		mlattr.ProblemRunSilent:  inRanks(2, goesSilent),
		mlattr.ProblemGPUFailed:  changing(2, func(w *world) { w.gpu = func(_ int, g *gpuMetrics) { g.failed = true } }, 2),
		mlattr.ProblemRankMissing: changing(20, func(w *world) {
			w.mute[3] = true
			w.gpu = func(rank int, g *gpuMetrics) { g.memory = int64(3 - rank) }
		}, 60),
		mlattr.ProblemSlow:      changing(120, func(w *world) { w.rest *= 2 }, 60),
		mlattr.ProblemThrottled: changing(120, func(w *world) { w.rest, w.gpu = 12*time.Second, heat }, 60),
		mlattr.ProblemSlowHost: inRanks(6, func(t *testing.T, w *world) {
			w.load = func(rank int) time.Duration { return []time.Duration{3, 1, 1}[rank/2] * time.Second }
			w.step(t, 200)
			w.run.run = "run-b"
			w.step(t, 200)
		}),
		mlattr.ProblemLemonHost: inRanks(20, func(t *testing.T, w *world) {
			for n := range 3 {
				w.oneSlow(t, 3, n)
			}
		}),
		mlattr.ProblemLemonVersion: inRanks(1, func(t *testing.T, w *world) { w.onTwoDrivers(t, 500*time.Millisecond) }),
		mlattr.ProblemNonfinite:    changing(20, func(w *world) { w.loss = math.NaN() }, 5),
		mlattr.ProblemLossSpike:    changing(300, func(w *world) { w.loss = 7 }, 5),
		mlattr.ProblemLossFrozen: inRanks(2, func(t *testing.T, w *world) {
			for n := range 300 {
				w.loss = 2 + 0.02*math.Sin(float64(min(n, 200)))
				w.step(t, 1)
			}
		}),
		mlattr.ProblemLossDiverged: changing(300, func(w *world) { w.loss = 7 }, 100),
		mlattr.ProblemRunFailed: inRanks(1, func(t *testing.T, w *world) {
			w.step(t, 20)
			w.gpu = func(_ int, g *gpuMetrics) { g.memory = 0 }
			w.send(t, 0, "train", w.clock.Add(-time.Minute), w.clock, map[string]any{"error.type": "ValueError"})
			w.wait(t, time.Minute)
		}),
		mlattr.ProblemRestartLoop: inRanks(1, func(t *testing.T, w *world) {
			for attempt := range 5 {
				w.stated["ml.run.attempt"] = attempt
				w.step(t, 3)
			}
		}),
		mlattr.ProblemCheckpoint: inRanks(2, func(t *testing.T, w *world) {
			for range 5 {
				w.step(t, 30)
				w.send(t, 0, "checkpoint", w.clock.Add(-time.Second), w.clock, nil)
			}
			w.step(t, 70)
		}),
		mlattr.ProblemHeldIdle: inRanks(1, func(t *testing.T, w *world) {
			w.gpu = idle
			w.wait(t, 35*time.Minute)
		}),
		mlattr.ProblemMemoryGrowth: inRanks(1, func(t *testing.T, w *world) {
			w.gpu = func(_ int, g *gpuMetrics) { g.used, g.limit = int64(40+w.number/20)<<30, 80<<30 }
			w.step(t, 6*45)
		}),
	}
}
