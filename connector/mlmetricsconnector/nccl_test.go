package mlmetricsconnector

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/flightrecorder"
)

// affected is a rank of a run in a state, a rank below 0 one whose number in the run
// is unknown.
type affected struct {
	rank  int64
	state string
}

// ncclAnswer is what the nccl receiver makes of an answer.
func ncclAnswer(run string, at time.Time, all ...affected) pmetric.Metrics {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	add := func(name string) pmetric.NumberDataPoint {
		m := metrics.AppendEmpty()
		m.SetName(name)
		point := m.SetEmptySum().DataPoints().AppendEmpty()
		point.SetIntValue(1)
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
		point.Attributes().PutStr("ml.run.id", run)
		return point
	}
	add("nccl.communicator.size")
	for i := range all {
		attrs := add("nccl.rank.state").Attributes()
		attrs.PutStr("nccl.rank.state", all[i].state)
		attrs.PutStr("nccl.rank.host", fmt.Sprint("10.0.0.", all[i].rank))
		attrs.PutInt("nccl.rank", 99)
		if all[i].rank >= 0 {
			attrs.PutInt("ml.rank.global", all[i].rank)
		}
	}
	return md
}

// hangs has a run of four ranks step and then stop, while NCCL says something each
// 15 seconds.
func hangs(t *testing.T, says func(w *world) []pmetric.Metrics) *world {
	t.Helper()
	w := newWorld(t, 4)
	w.step(t, 20)
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 1, 120 }
	for range 24 {
		for _, md := range says(w) {
			w.metrics(t, md)
		}
		w.wait(t, 15*time.Second)
	}
	return w
}

// A hang names the rank that the others wait for, as NCCL says.
func TestAHangThatNCCLExplains(t *testing.T) {
	for name, tt := range map[string]struct {
		says           []affected
		rank           int64
		host           string
		evidence, next string
	}{
		"it is dead": {
			[]affected{{2, "dead"}}, 2, "n1",
			"NCCL: rank 2 (n1) is dead",
			"See whether the process of rank 2 (n1) still runs: the others wait for it.",
		},
		"it does not respond": {
			[]affected{{3, "behind"}, {2, "unresponsive"}}, 2, "n1",
			"NCCL: rank 2 (n1) does not respond; NCCL: rank 3 (n1) has launched fewer operations than the others",
			"See whether the process of rank 2 (n1) still runs: the others wait for it.",
		},
		"it is behind": {
			[]affected{{1, "behind"}}, 1, "n0",
			"NCCL: rank 1 (n0) has launched fewer operations than the others",
			"See what rank 1 (n0) does with py-spy dump: the others wait for it.",
		},
		"it sends nothing": {
			[]affected{{1, "behind"}, {7, "behind"}, {7, "missing"}}, 7, "",
			"NCCL: rank 7 (10.0.0.7) does not have the communicator; NCCL: rank 1 (n0) has launched",
			"See whether the process of rank 7 (10.0.0.7) still runs: the others wait for it.",
		},
		"many are": {
			[]affected{{10, "dead"}, {2, "dead"}, {3, "dead"}, {4, "dead"}, {5, "dead"}, {6, "dead"}}, 2, "n1",
			"NCCL: rank 5 (10.0.0.5) is dead; NCCL: 2 ranks more",
			"See whether the process of rank 2 (n1) still runs: the others wait for it.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := hangs(t, func(w *world) []pmetric.Metrics { return []pmetric.Metrics{ncclAnswer("run-a", w.clock, tt.says...)} })
			found := w.only(t, "looks_hung")
			assert.Contains(t, texts(found, "ml.problem.evidence"), tt.evidence)
			assert.Equal(t, tt.next, textOf(t, found, "ml.problem.next"))
			rank, _ := found.Attributes().Get("ml.rank.global")
			assert.Equal(t, tt.rank, rank.Int())
			host, _ := found.Attributes().Get("host.name")
			assert.Equal(t, tt.host, host.Str())
		})
	}
}

// What NCCL says of another run, said before, or cannot say yet is no evidence.
func TestWhatNCCLDoesNotExplain(t *testing.T) {
	for name, says := range map[string]func(w *world) []pmetric.Metrics{
		"another run": func(w *world) []pmetric.Metrics {
			return []pmetric.Metrics{ncclAnswer("run-b", w.clock, affected{2, "dead"})}
		},
		"an unknown one": func(w *world) []pmetric.Metrics {
			return []pmetric.Metrics{ncclAnswer("", w.clock, affected{2, "dead"})}
		},
		"no rank": func(w *world) []pmetric.Metrics {
			return []pmetric.Metrics{ncclAnswer("run-a", w.clock, affected{-1, "dead"})}
		},
		"another state": func(w *world) []pmetric.Metrics {
			return []pmetric.Metrics{ncclAnswer("run-a", w.clock, affected{2, "sad"})}
		},
		"it is back": func(w *world) []pmetric.Metrics {
			return []pmetric.Metrics{ncclAnswer("run-a", w.clock, affected{2, "dead"}), ncclAnswer("run-a", w.clock.Add(time.Second))}
		},
		"an earlier answer comes later": func(w *world) []pmetric.Metrics {
			return []pmetric.Metrics{ncclAnswer("run-a", w.clock), ncclAnswer("run-a", w.clock.Add(-time.Second), affected{2, "dead"})}
		},
		"an answer of tomorrow": func(w *world) []pmetric.Metrics {
			return []pmetric.Metrics{ncclAnswer("run-a", w.clock.Add(24*time.Hour), affected{2, "dead"})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := hangs(t, says).only(t, "looks_hung")
			assert.NotContains(t, texts(found, "ml.problem.evidence"), "NCCL")
		})
	}
}

// NCCL also says so of a rank that is missing while the others go on.
func TestAMissingRankThatNCCLMisses(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 20)
	w.mute[3] = true
	w.gpu = func(rank int, g *gpuMetrics) { g.memory = int64(3 - rank) }
	for range 60 {
		w.metrics(t, ncclAnswer("run-a", w.clock, affected{3, "unresponsive"}))
		w.step(t, 1)
	}
	assert.Contains(t, texts(w.only(t, "rank_missing"), "ml.problem.evidence"), "NCCL: rank 3 (n1) does not respond")
}

// However many runs and ranks NCCL speaks of, few are remembered, and none for long.
func TestWhatNCCLSaysIsBounded(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	var many []affected
	for rank := range int64(500) {
		many = append(many, affected{rank, "dead"})
	}
	r.metrics(t, ncclAnswer("run-a", r.clock, many...))
	for n := range 8192 + 100 {
		r.metrics(t, ncclAnswer(fmt.Sprint("run-", n), r.clock, affected{1, "dead"}))
	}
	seen := r.connector.Shared.seen
	_, stuck := seen.Settle(nil, r.clock)
	assert.Len(t, stuck, 8192)
	assert.Len(t, stuck["run-a"].Stuck, 64)
	_, stuck = seen.Settle(nil, r.clock.Add(5*time.Minute+time.Second))
	assert.Empty(t, stuck)
}

// dumpsOf are the records of the nccl receivers of two hosts, each with the dumps of the ranks on
// it: all but the missing ones wait in an all_reduce.
func dumpsOf(run string, world int64, at time.Time, missing ...int64) []plog.Logs {
	hosts := []plog.Logs{plog.NewLogs(), plog.NewLogs()}
	for rank := range world {
		g := flightrecorder.Group{
			Name: "0", Description: "default_pg", Ranks: fmt.Sprintf("0-%d:1", world-1),
			Newest: &flightrecorder.Entry{Number: 16, Operation: "broadcast", Frame: "data.py:7 in load"},
		}
		if !slices.Contains(missing, rank) {
			g.Waits = &flightrecorder.Entry{Number: 17, Operation: "all_reduce", Frame: "train.py:88 in step"}
			g.Newest = g.Waits
		}
		d := flightrecorder.Dump{Rank: rank, Groups: []flightrecorder.Group{g}}
		record := hosts[rank*2/world].ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetEventName("pytorch.flight_recorder.dump")
		record.SetTimestamp(pcommon.NewTimestampFromTime(at))
		record.Attributes().PutStr("ml.run.id", run)
		record.Attributes().PutInt("ml.rank.global", rank)
		_ = record.Attributes().PutEmptySlice("pytorch.process_groups").FromRaw(d.Record())
	}
	return hosts
}

// hungFor has a run of four ranks on two hosts step and then stop for a time, and sends log records
// of the time since it has stopped.
func hungFor(t *testing.T, minutes int, logs func(w *world, minute int) []plog.Logs) *world {
	t.Helper()
	w := newWorld(t, 4)
	w.step(t, 20)
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 1, 120 }
	for minute := range minutes {
		for _, ld := range logs(w, minute) {
			w.reads(t, ld)
		}
		for range 4 {
			w.wait(t, 15*time.Second)
		}
	}
	return w
}

// A hang names the rank that the dumps of all hosts name together. On neither host is it known.
func TestAHangThatDumpsExplain(t *testing.T) {
	const sentence = "Flight Recorder: ranks 0, 1, 2 wait in all_reduce #17 of the group default_pg (train.py:88 in step) for rank 3, which has not called it; Flight Recorder: rank 3 was last in broadcast #16 (data.py:7 in load)"
	w := hungFor(t, 6, func(w *world, minute int) []plog.Logs {
		if minute != 1 {
			return nil
		}
		return dumpsOf("run-a", 4, w.clock, 3)
	})
	found := w.only(t, "looks_hung")
	assert.Contains(t, texts(found, "ml.problem.evidence"), sentence)
	assert.Equal(t, "See what rank 3 (n1) does with py-spy dump: the others wait for it.", textOf(t, found, "ml.problem.next"))
	rank, _ := found.Attributes().Get("ml.rank.global")
	assert.EqualValues(t, 3, rank.Int())

	// NCCL's own word of a dead rank is graver.
	w = hungFor(t, 6, func(w *world, _ int) []plog.Logs {
		w.metrics(t, ncclAnswer("run-a", w.clock, affected{1, "dead"}))
		return dumpsOf("run-a", 4, w.clock, 3)
	})
	found = w.only(t, "looks_hung")
	assert.Contains(t, texts(found, "ml.problem.evidence"), "NCCL: rank 1 (n0) is dead; "+sentence)
	rank, _ = found.Attributes().Get("ml.rank.global")
	assert.EqualValues(t, 1, rank.Int())
}

// A watchdog writes after its timeout. The problem, which has begun before, then has what dumps say.
func TestDumpsAfterTheProblem(t *testing.T) {
	w := hungFor(t, 15, func(w *world, minute int) []plog.Logs {
		if minute != 10 {
			return nil
		}
		return dumpsOf("run-a", 4, w.clock, 3)
	})
	var evidence []string
	for _, record := range recordsOf(w.logs, "ml.problem") {
		evidence = append(evidence, texts(record, "ml.problem.evidence"))
	}
	require.NotEmpty(t, evidence)
	assert.NotContains(t, evidence[0], "Flight Recorder")
	assert.Contains(t, evidence[len(evidence)-1], "for rank 3, which has not called it")
}

// Dumps of a healthy moment make no pause a hang, and what they name is not blamed.
func TestDumpsBeforeAPause(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 20)
	for _, ld := range dumpsOf("run-a", 4, w.clock, 3) {
		w.reads(t, ld)
	}
	w.step(t, 2)
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 0, 90 }
	w.wait(t, 20*time.Minute)
	assert.Empty(t, w.found())
	w.wait(t, 10*time.Minute)
	all := w.found()["looks_hung"]
	require.Len(t, all, 1)
	found := all[0]
	assert.NotContains(t, texts(found, "ml.problem.evidence"), "Flight Recorder")
	assert.NotContains(t, textOf(t, found, "ml.problem.next"), "the others wait for it")
}

// A rank that is missing hours later has nothing to do with dumps of before.
func TestDumpsLongBeforeARankIsMissing(t *testing.T) {
	for name, dumps := range map[string]func(w *world){
		"before": func(w *world) { w.step(t, 500) },
		"since":  func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			w.step(t, 20)
			w.gpu = func(rank int, g *gpuMetrics) { g.memory = int64(3 - rank) }
			if name == "since" {
				w.mute[3] = true
				w.step(t, 5)
			}
			for _, ld := range dumpsOf("run-a", 4, w.clock, 3) {
				w.reads(t, ld)
			}
			dumps(w)
			w.mute[3] = true
			w.step(t, 60)
			evidence := texts(w.only(t, "rank_missing"), "ml.problem.evidence")
			if name == "since" {
				assert.Contains(t, evidence, "Flight Recorder: ranks 0, 1, 2 wait in all_reduce #17")
			} else {
				assert.NotContains(t, evidence, "Flight Recorder")
			}
		})
	}
}

// Where none is missing, the dumps name no rank, and say so.
func TestDumpsThatNameNoRank(t *testing.T) {
	found := hungFor(t, 6, func(w *world, _ int) []plog.Logs { return dumpsOf("run-a", 4, w.clock) }).only(t, "looks_hung")
	assert.Contains(t, texts(found, "ml.problem.evidence"), "and none is missing: the operation itself does not end")
	assert.Contains(t, textOf(t, found, "ml.problem.next"), "See what each rank waits for")
}

// Dumps of another run, of an earlier hang or of tomorrow are no evidence, nor is what is no dump.
func TestWhatDumpsDoNotExplain(t *testing.T) {
	change := func(ld []plog.Logs, of func(plog.LogRecord)) []plog.Logs {
		for _, one := range ld {
			for _, rl := range one.ResourceLogs().All() {
				of(rl.ScopeLogs().At(0).LogRecords().At(0))
			}
		}
		return ld
	}
	for name, logs := range map[string]func(w *world, minute int) []plog.Logs{
		"another run":     func(w *world, _ int) []plog.Logs { return dumpsOf("run-b", 4, w.clock, 3) },
		"an unknown run":  func(w *world, _ int) []plog.Logs { return dumpsOf("", 4, w.clock, 3) },
		"overflow":        func(w *world, _ int) []plog.Logs { return dumpsOf("_other", 4, w.clock, 3) },
		"an earlier hang": func(w *world, _ int) []plog.Logs { return dumpsOf("run-a", 4, w.clock.Add(-time.Hour), 3) },
		"nobody waits":    func(w *world, _ int) []plog.Logs { return dumpsOf("run-a", 4, w.clock, 0, 1, 2, 3) },
		"another event": func(w *world, _ int) []plog.Logs {
			return change(dumpsOf("run-a", 4, w.clock, 3), func(r plog.LogRecord) { r.SetEventName("app.event") })
		},
		"no rank": func(w *world, _ int) []plog.Logs {
			return change(dumpsOf("run-a", 4, w.clock, 3), func(r plog.LogRecord) { r.Attributes().Remove("ml.rank.global") })
		},
		"a rank below 0": func(w *world, _ int) []plog.Logs {
			return change(dumpsOf("run-a", 4, w.clock, 3), func(r plog.LogRecord) { r.Attributes().PutInt("ml.rank.global", -1) })
		},
		"no groups": func(w *world, _ int) []plog.Logs {
			return change(dumpsOf("run-a", 4, w.clock, 3), func(r plog.LogRecord) { r.Attributes().Remove("pytorch.process_groups") })
		},
		"no groups of it": func(w *world, _ int) []plog.Logs {
			return change(dumpsOf("run-a", 4, w.clock, 3), func(r plog.LogRecord) { r.Attributes().PutEmptySlice("pytorch.process_groups") })
		},
		"no list": func(w *world, _ int) []plog.Logs {
			return change(dumpsOf("run-a", 4, w.clock, 3), func(r plog.LogRecord) { r.Attributes().PutStr("pytorch.process_groups", "0||0-3:1") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := hungFor(t, 6, logs).only(t, "looks_hung")
			assert.NotContains(t, texts(found, "ml.problem.evidence"), "Flight Recorder")
		})
	}
}

// However many runs have dumps, little is remembered, and nothing for long.
func TestWhatDumpsSayIsBounded(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for n := range 1100 {
		for _, ld := range dumpsOf(fmt.Sprint("run-", n), 2, r.clock, 1) {
			r.reads(t, ld)
		}
	}
	for _, ld := range dumpsOf("run-large", 20_000, r.clock, 1) {
		r.reads(t, ld)
	}
	seen := r.connector.Shared.seen
	_, said := seen.Settle(nil, r.clock)
	assert.Len(t, said, 1024)
	assert.EqualValues(t, 2*1100+20_000-16_384+1101-1024, seen.LeftDumps())
	assert.Zero(t, seen.LeftDumps())
	_, said = seen.Settle(nil, r.clock.Add(25*time.Hour))
	assert.Empty(t, said)
}
