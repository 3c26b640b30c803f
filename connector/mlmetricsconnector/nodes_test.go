package mlmetricsconnector

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// nodeFailure is what ml_lines makes of the report of a node: the rank that failed first
// there, and how long after the start of the test, by the node's clock.
type nodeFailure struct {
	service, host string
	rank          int64
	at            time.Duration
	class, says   string
}

// fails sends the failure of a node.
func (r *run) fails(t *testing.T, start time.Time, f nodeFailure) {
	t.Helper()
	r.spans++
	td := ptrace.NewTraces()
	span := addSpan(td, "run-a", byte(f.rank)+10, r.spans)
	resource := td.ResourceSpans().At(0).Resource().Attributes()
	resource.PutStr("service.name", f.service)
	resource.PutStr("host.name", f.host)
	span.Attributes().PutStr("ml.phase", "train")
	if f.rank >= 0 {
		span.Attributes().PutInt("ml.rank.global", f.rank)
	}
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage(f.says)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", f.class)
	event.Attributes().PutStr("exception.message", f.says)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(f.at)))
	require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
}

var (
	stopped = nodeFailure{"trainer", "n3", 16, 60 * time.Second, "SIGTERM", "Signal 15 (SIGTERM) received by PID 7"}
	lost    = nodeFailure{"trainer", "n4", 24, 61 * time.Second, "RuntimeError", "[/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1234"}
	killed  = nodeFailure{"trainer", "n1", 3, 63 * time.Second, "ValueError", "bad batch: 3"}
	later   = nodeFailure{"trainer", "n2", 9, 65 * time.Second, "torch.OutOfMemoryError", "CUDA out of memory."}
	// ended has no rank: its launcher was stopped.
	ended = nodeFailure{"trainer", "n5", -1, 50 * time.Second, "torch.distributed.elastic.multiprocessing.api.SignalException", "Process 1 got signal: 15"}
)

// Whatever the order in which the reports of the nodes arrive, the run has one failure: the
// rank that failed first by the clocks of the nodes, and not one that was stopped because of
// another, even if its clock is behind.
func TestTheFailureOfARunOfNodes(t *testing.T) {
	all := []nodeFailure{stopped, lost, killed, later, ended}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	for name, tt := range map[string]struct {
		failures []nodeFailure
		// between is the time between two reports.
		between time.Duration
	}{
		"in order": {all, 0}, "backwards": {backwards, 0},
		"each at another emission": {all, 20 * time.Second}, "backwards, each at another emission": {backwards, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			logs := new(consumertest.LogsSink)
			r.connector.Shared.outlets.Add(logs)
			start := r.clock
			r.after(t, 70*time.Second)
			for _, f := range tt.failures {
				r.fails(t, start, f)
				if tt.between > 0 {
					r.after(t, tt.between)
				}
			}
			onsets, _ := problems(t, r.after(t, 2*time.Minute))
			require.Len(t, onsets, 1)
			require.Contains(t, onsets, "trainer/run_failed/run-a")
			records := recordsOf(logs, "ml.problem")
			require.NotEmpty(t, records)
			assertCause(t, records[len(records)-1], killed, []any{
				"rank 3 (n1) ended with ValueError in train at 03:05:08 UTC", "rank 9 (n2) followed with torch.OutOfMemoryError in train at 03:05:10 UTC",
				"the process (n5) followed with torch.distributed.elastic.multiprocessing.api.SignalException in train at 03:04:55 UTC",
				"rank 16 (n3) followed with SIGTERM in train at 03:05:05 UTC", "1 more ranks have failed",
			})
			ids := map[any]bool{}
			for _, record := range records {
				ids[record.Attributes().AsRaw()["ml.problem.id"]] = true
			}
			assert.Len(t, ids, 1, "one problem")
		})
	}
}

func assertCause(t *testing.T, record plog.LogRecord, of nodeFailure, evidence []any) {
	t.Helper()
	is := record.Attributes().AsRaw()
	assert.Equal(t, of.host, is["host.name"])
	assert.EqualValues(t, of.rank, is["ml.rank.global"])
	assert.Equal(t, of.class, is["error.type"])
	assert.Equal(t, of.says, is["exception.message"])
	assert.Equal(t, evidence, is["ml.problem.evidence"])
}

// Where all were stopped, the first of them is the cause. A node without a report changes
// nothing, and one that takes steps and prints no failure neither.
func TestNodesThatWereStopped(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	start := r.clock
	r.resource = map[string]any{"host.name": "n9"}
	for range 60 {
		r.work(t, "batch", time.Second)
	}
	r.fails(t, start, lost)
	r.fails(t, start, stopped)
	onsets, _ := problems(t, r.after(t, 15*time.Second))
	assert.Empty(t, onsets, "steps may go on")
	onsets, _ = problems(t, r.after(t, 10*time.Minute))
	assert.Contains(t, onsets, "trainer/run_failed/run-a")
	records := recordsOf(logs, "ml.problem")
	require.NotEmpty(t, records)
	assertCause(t, records[0], stopped, []any{
		"rank 16 (n3) ended with SIGTERM in train at 03:05:05 UTC", "rank 24 (n4) followed with RuntimeError in train at 03:05:06 UTC",
	})
}

// Nodes that print no step are named after no trainer. Their failures are those of the run
// that takes steps.
func TestNodesWithoutSteps(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	start := r.clock
	r.resource = map[string]any{"host.name": "n2"}
	for range 60 {
		r.work(t, "batch", time.Second)
	}
	first := killed
	first.service = "training"
	own := later
	own.rank = -1
	r.fails(t, start, own)
	r.fails(t, start, first)
	onsets, _ := problems(t, r.after(t, 15*time.Second))
	require.Len(t, onsets, 1)
	assert.Contains(t, onsets, "trainer/run_failed/run-a")
	records := recordsOf(logs, "ml.problem")
	require.Len(t, records, 1)
	assertCause(t, records[0], first, []any{
		"rank 3 (n1) ended with ValueError in train at 03:05:08 UTC", "the process (n2) followed with torch.OutOfMemoryError in train at 03:05:10 UTC",
	})
}
