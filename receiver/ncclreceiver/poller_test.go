package ncclreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/rastest"
)

// counts returns the sums of a metric of the receiver itself by an attribute.
func (r *rig) counts(t *testing.T, name, by string) map[string]int64 {
	t.Helper()
	m, err := r.own.GetMetric(name)
	require.NoError(t, err)
	counts := make(map[string]int64)
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := point.Attributes.Value(attribute.Key(by))
		counts[value.AsString()] += point.Value
	}
	return counts
}

// trainer adds the two processes of the run on this host.
func (r *rig) trainer(t *testing.T) {
	t.Helper()
	for rank := range 2 {
		r.process(t, 100+rank, fmt.Sprint("RANK=", rank), fmt.Sprint("LOCAL_RANK=", rank), "WORLD_SIZE=4",
			"TORCHELASTIC_RUN_ID=run-a", "OTEL_SERVICE_NAME=trainer", "AWS_SECRET_ACCESS_KEY=x")
	}
}

// world is the communicator of all four ranks of the run, two on each host, which
// have launched so many operations.
func world(counts ...int) rastest.Communicator {
	c := rastest.Communicator{Hash: "0x1a", Size: 4}
	for rank, count := range counts {
		host, pid := here, 100+rank
		if rank > 1 {
			host, pid = there, 898+rank
		}
		c.Ranks = append(c.Ranks, rastest.Rank{Rank: rank, Host: host, PID: pid, Device: rank % 2, AllReduce: count})
	}
	return c
}

// pair is the communicator of the second rank of each host.
func pair() rastest.Communicator {
	return rastest.Communicator{Hash: "0x2b", Size: 2, Ranks: []rastest.Rank{
		{Rank: 0, Host: here, PID: 101, Device: 1, AllReduce: 5}, {Rank: 1, Host: there, PID: 901, Device: 1, AllReduce: 5},
	}}
}

// gone moves the last rank to the missing ones.
func gone(c rastest.Communicator, dead bool) rastest.Communicator {
	last := c.Ranks[len(c.Ranks)-1]
	last.Unresponsive, last.Dead = true, dead
	c.Ranks, c.Missing = c.Ranks[:len(c.Ranks)-1], []rastest.Rank{last}
	return c
}

func status(all ...rastest.Communicator) rastest.Reply { return rastest.Status(rastest.Text(all...)) }

// The process of rank 3 stops, dies, and comes back. NCCL 2.28.9 leaves out commas.
func TestAMissingRank(t *testing.T) {
	dead := rastest.Text(gone(world(9, 9, 9, 9), true), gone(pair(), true))
	r := newRig(t, status(world(9, 9, 9, 9), pair()), status(gone(world(9, 9, 9, 9), false), gone(pair(), false)),
		rastest.Status(rastest.WithoutCommas(dead)), status(world(9, 9, 9, 9), pair()))
	r.trainer(t)
	r.polls(t, 1)
	golden.Compare(t, "testdata/healthy.txt", golden.MetricsWithoutTimes(t, r.latest(t)))
	assert.Zero(t, r.sentL.LogRecordCount())
	r.polls(t, 1)
	golden.Compare(t, "testdata/unresponsive.txt", golden.MetricsWithoutTimes(t, r.latest(t)))
	golden.Compare(t, "testdata/unresponsive_log.txt", golden.Logs(t, r.sentL.AllLogs()[0]))
	r.polls(t, 3)
	const rank = "Rank 3 of the 4 ranks of communicator 0x1a:0x2:0x3 (process 901 on 10.0.0.2)"
	assert.Equal(t, []string{
		rank + " does not respond.", rank + " is dead: NCCL has given its process up.", rank + " is no longer missing or behind.",
	}, r.said(), "the process has one record, of the larger communicator")
	assert.Equal(t, map[string]int64{"answered": 5}, r.outcomes(t))
}

// The records of a change are sent before its metrics, so that they are in the evidence of a
// hang that is concluded from these.
func TestRecordsAreSentFirst(t *testing.T) {
	r := newRig(t, status(gone(world(9, 9, 9, 9), false)))
	r.start(t)
	first := -1
	metrics, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		first = r.sentL.LogRecordCount()
		return nil
	})
	require.NoError(t, err)
	r.metrics.next.Store(&metrics)
	r.polls(t, 1)
	assert.Equal(t, 1, first)
}

// Rank 2 has not launched what the others have, and all stand still.
func TestARankThatIsBehind(t *testing.T) {
	r := newRig(t, status(world(8, 8, 7, 8)), status(world(9, 9, 8, 9)))
	r.trainer(t)
	r.polls(t, 4)
	assert.Empty(t, r.said(), "the counts are the same for three answers")
	r.polls(t, 1)
	assert.Equal(t, []string{"Rank 2 of the 4 ranks of communicator 0x1a:0x2:0x3 (process 900 on 10.0.0.2) is behind, and the others wait for it: it has launched 8 all_reduce operations of 9."}, r.said())
	golden.Compare(t, "testdata/behind.txt", golden.MetricsWithoutTimes(t, r.latest(t)))
}

// Of two jobs on the host, the kernel chooses which one answers.
func TestTwoJobs(t *testing.T) {
	other := rastest.Communicator{Hash: "0x9c", Size: 2, Ranks: []rastest.Rank{{Rank: 0, Host: here, PID: 300, AllReduce: 2}, {Rank: 1, Host: here, PID: 301, AllReduce: 1}}}
	a, b := status(world(9, 9, 8, 9)), status(other)
	r := newRig(t, a, b, a, b, a, b, a, b)
	r.trainer(t)
	r.process(t, 300, "RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=run-b")
	r.polls(t, 6)
	assert.Empty(t, r.said())
	runs := make(map[string]int)
	for _, md := range r.sentM.AllMetrics() {
		runs[runIDs(md)]++
	}
	assert.Equal(t, map[string]int{"run-a": 3, "run-b": 3}, runs, "each answer has one run")
	r.polls(t, 2)
	assert.Len(t, r.said(), 2, "each job is compared with itself")
}

// The collector of the first rank's host reports a job, and others ask seldom.
func TestAJobOfAnotherHost(t *testing.T) {
	moved := world(9, 9, 9, 9)
	for i := range moved.Ranks {
		moved.Ranks[i].Host = there
	}
	r := newRig(t, status(moved))
	r.polls(t, 21)
	assert.Empty(t, r.sentM.AllMetrics())
	assert.Equal(t, map[string]int64{"answered": 3}, r.outcomes(t), "it asks every tenth time")

	r = newRig(t, status(world(9, 9, 9, 9)), status(moved))
	r.polls(t, 21)
	assert.Len(t, r.sentM.AllMetrics(), 1)
	assert.Equal(t, map[string]int64{"answered": 21}, r.outcomes(t), "its own job may answer next time")
}

// Without permission to read environments, ranks have their numbers in NCCL only.
func TestUnknownProcesses(t *testing.T) {
	r := newRig(t, status(gone(world(9, 9, 9, 9), true)))
	r.polls(t, 1)
	golden.Compare(t, "testdata/unknown.txt", golden.MetricsWithoutTimes(t, r.latest(t)))
}

func TestFailedQueries(t *testing.T) {
	r := newRig(t, rastest.Status("ERROR: no\n"), rastest.Old(), rastest.Status("{"), status(world(9, 9, 9, 9)))
	r.polls(t, 4)
	assert.Equal(t, map[string]int64{"protocol": 1, "unsupported": 1, "malformed": 1, "answered": 1}, r.outcomes(t))
	assert.Len(t, r.sentM.AllMetrics(), 1, "it asks again")
}

// However many communicators and ranks there are, few have series and records.
func TestSeriesAreBounded(t *testing.T) {
	var all []rastest.Communicator
	for i := range 20 {
		c := rastest.Communicator{Hash: fmt.Sprintf("0x%x", i), Size: 100 + i, Ranks: []rastest.Rank{{Host: here, PID: 100}}}
		if i < 2 {
			for rank := 1; rank < 100; rank++ {
				c.Missing = append(c.Missing, rastest.Rank{Rank: rank, Host: "unknown", PID: -1, Dead: true})
			}
		}
		all = append(all, c)
	}
	r := newRig(t, status(all...))
	r.cfg.maxCommunicators = 3
	r.polls(t, 1)
	golden.Compare(t, "testdata/bounded.txt", golden.MetricsWithoutTimes(t, r.latest(t)))
	assert.Equal(t, map[string]int64{"nccl": 17}, r.counts(t, "otelcol_receiver_nccl_dropped_communicators", "receiver"))
	assert.Len(t, r.said(), 2*99)
}

// What the pipeline refuses for now is sent again, up to a limit.
func TestARefusedRecord(t *testing.T) {
	many := rastest.Communicator{Hash: "0x1", Size: 2000, Ranks: []rastest.Rank{{Host: here, PID: 100}}}
	for rank := 1; rank < 2000; rank++ {
		many.Missing = append(many.Missing, rastest.Rank{Rank: rank, Host: "unknown", PID: -1})
	}
	r := newRig(t, status(many))
	r.refused = errors.New("later")
	r.polls(t, 2)
	assert.Equal(t, map[string]int64{"nccl": 1999 - maxPending}, r.counts(t, "otelcol_receiver_nccl_dropped_records", "receiver"))
	r.refused = nil
	r.polls(t, 2)
	assert.Len(t, r.said(), maxPending, "sent once")

	r = newRig(t, status(gone(world(9, 9, 9, 9), true)), status(world(9, 9, 9, 9)))
	r.refused = consumererror.NewPermanent(errors.New("never"))
	r.polls(t, 2)
	assert.Equal(t, map[string]int64{"nccl": 2}, r.counts(t, "otelcol_receiver_nccl_dropped_records", "receiver"))
	r.refused = nil
	r.polls(t, 1)
	assert.Empty(t, r.said())
}

// The pipeline of the metrics starts first, and the queries with it.
func TestAChangeBeforeThePipelineOfLogs(t *testing.T) {
	r := newRig(t, status(gone(world(9, 9, 9, 9), true)))
	r.start(t)
	logs := r.logs.next.Swap(nil)
	r.polls(t, 2)
	r.logs.next.Store(logs)
	r.polls(t, 2)
	assert.Len(t, r.said(), 1)
}

// A dump says nothing about which of two jobs has written it, and a job that ended
// long ago has not.
func TestADumpOfAnUnknownJob(t *testing.T) {
	other := rastest.Communicator{Hash: "0x9c", Size: 2, Ranks: []rastest.Rank{{Rank: 0, Host: here, PID: 300}, {Rank: 1, Host: here, PID: 301}}}
	ends := func(*rastest.Conn) {}
	for name, tt := range map[string]struct {
		replies []rastest.Reply
		polls   int
		want    string
	}{
		"one job":                  {[]rastest.Reply{status(world(9, 9, 9, 9))}, 40, "run-a"},
		"it answers no more":       {[]rastest.Reply{status(world(9, 9, 9, 9)), ends}, 2, "run-a"},
		"it ended long ago":        {[]rastest.Reply{status(world(9, 9, 9, 9)), ends}, 40, ""},
		"two jobs":                 {[]rastest.Reply{status(other), status(world(9, 9, 9, 9))}, 2, ""},
		"another ended long ago":   {[]rastest.Reply{status(other), status(world(9, 9, 9, 9))}, 40, "run-a"},
		"another answers meantime": {[]rastest.Reply{status(world(9, 9, 9, 9)), status(other), status(world(9, 9, 9, 9))}, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tt.replies...)
			r.trainer(t)
			r.process(t, 300, "RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=run-b")
			r.process(t, 301, "RANK=1", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=run-b")
			r.polls(t, tt.polls)
			assert.Equal(t, tt.want, r.runOf(1, r.addresses(), r.now))
		})
	}
}

// A dump of a rank of this host has its run. One that is no pickle of PyTorch is reported
// like any other.
func TestAFlightRecorderDump(t *testing.T) {
	r := newRig(t, status(world(9, 9, 9, 9)))
	r.trainer(t)
	r.polls(t, 1)
	for _, name := range []string{"nccl_trace_rank_1", "comm_lib_trace_rank_3"} {
		writeFile(t, r.cfg, "tmp/"+name, "\x80\x04pickle")
		path := filepath.Join(r.cfg.RootPath, "tmp", name)
		at := time.Now().Add(time.Hour).Truncate(time.Hour)
		require.NoError(t, os.Chmod(path, 0))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	r.polls(t, 2)
	require.Len(t, r.sentL.AllLogs(), 1)
	assert.Equal(t, []string{
		"PyTorch has written the Flight Recorder dump /tmp/nccl_trace_rank_1 of rank 1.",
		"PyTorch has written the Flight Recorder dump /tmp/comm_lib_trace_rank_3 of rank 3.",
	}, r.said())
	attrs := r.sentL.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()
	assert.Equal(t, map[string]any{
		"file.path": "/tmp/nccl_trace_rank_1", "file.size": int64(8), "host.name": "node-1", "ml.rank.global": int64(1), "ml.run.id": "run-a",
	}, attrs)
	_, known := r.sentL.AllLogs()[0].ResourceLogs().At(1).ScopeLogs().At(0).LogRecords().At(0).Attributes().Get("ml.run.id")
	assert.False(t, known, "rank 3 of this job runs on another host")
}

// Where NCCL does not answer, a dump has the run of the process with its rank, if that had begun
// before and all dumps of the name lead to one run.
func TestTheRunOfADumpByItsProcess(t *testing.T) {
	for name, tt := range map[string]struct {
		more []string
		want []any
	}{
		"one run":              {nil, []any{"run-a", "run-a", nil}},
		"its launcher, too":    {[]string{"RANK=1", "WORLD_SIZE=4", "TORCHELASTIC_RUN_ID=run-a"}, []any{"run-a", "run-a", nil}},
		"a run without a dump": {[]string{"RANK=7", "WORLD_SIZE=8", "TORCHELASTIC_RUN_ID=run-b"}, []any{"run-a", "run-a", nil}},
		"two runs":             {[]string{"RANK=2", "WORLD_SIZE=4", "TORCHELASTIC_RUN_ID=run-b"}, []any{nil, nil, nil}},
		"an unknown run":       {[]string{"RANK=1", "WORLD_SIZE=4"}, []any{nil, nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(*rastest.Conn) {})
			r.process(t, 300, "RANK=0", "WORLD_SIZE=4", "TORCHELASTIC_RUN_ID=run-a")
			r.process(t, 301, "RANK=1", "WORLD_SIZE=4", "TORCHELASTIC_RUN_ID=run-a")
			r.process(t, 302, "RANK=1", "WORLD_SIZE=4", "TORCHELASTIC_RUN_ID=run-c")
			writeFile(t, r.cfg, "proc/302/stat", fmt.Sprintf("302 (python) S%s 99999999999 1\n", strings.Repeat(" 1", 18)))
			r.process(t, 303, tt.more...)
			r.polls(t, 1)
			for rank := range 3 {
				name := fmt.Sprintf("tmp/nccl_trace_rank_%d", rank)
				writeFile(t, r.cfg, name, "\x80\x04pickle")
				at := time.Now().Add(time.Hour)
				require.NoError(t, os.Chtimes(filepath.Join(r.cfg.RootPath, name), at, at))
			}
			r.polls(t, 2)
			require.Len(t, r.sentL.AllLogs(), 1)
			var runs []any
			for _, rl := range r.sentL.AllLogs()[0].ResourceLogs().All() {
				runs = append(runs, rl.ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()["ml.run.id"])
			}
			assert.Equal(t, tt.want, runs)
		})
	}
}

// What the dumps of a job say together is said once more of them have appeared: here those
// of four real ranks, of which one loads data.
func TestDumpsOfAJobAreCompared(t *testing.T) {
	r := newRig(t, status(world(9, 9, 9, 9)))
	r.trainer(t)
	r.polls(t, 1)
	for rank := range 4 {
		data, err := os.ReadFile(filepath.Join("..", "..", "internal", "shared", "flightrecorder", "testdata", "2.9.1", fmt.Sprintf("data_rank_%d", rank)))
		require.NoError(t, err)
		writeFile(t, r.cfg, fmt.Sprintf("tmp/comm_lib_trace_rank_%d", rank), string(data))
		at := time.Now().Add(time.Hour)
		require.NoError(t, os.Chtimes(filepath.Join(r.cfg.RootPath, "tmp", fmt.Sprintf("comm_lib_trace_rank_%d", rank)), at, at))
	}
	r.polls(t, 2)
	said := r.said()
	require.Len(t, said, 5)
	assert.Equal(t, "Ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py:37 in train_step) for rank 2, which has not called it. Rank 2 was last in all_reduce #7 (record.py:35 in train_step).", said[4])
	all := r.sentL.AllLogs()[0].ResourceLogs()
	waits := "8|all_gather|[[16]]~[Float]|record.py:37~in~train_step"
	assert.Equal(t, []any{"0|default_pg|0-3:1", waits, waits}, all.At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()["pytorch.process_groups"])
	attrs := all.At(all.Len() - 1).ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw()
	assert.Equal(t, []any{int64(0), int64(1), int64(3)}, attrs["pytorch.ranks.waiting"])
	assert.Equal(t, []any{int64(2)}, attrs["pytorch.ranks.missing"])
	assert.Equal(t, "record.py:37 in train_step", attrs["code.frame"])
	r.polls(t, 2)
	assert.Len(t, r.said(), 5, "nothing new")
}
