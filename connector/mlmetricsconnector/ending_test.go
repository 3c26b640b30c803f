package mlmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// ownSpan is a span of somebody's own loop. It begins in trace, before now, and is sent
// when it ends.
type ownSpan struct {
	trace       byte
	root        bool
	phase, fail string
	took        time.Duration
}

// own sends a span that ends now.
func (r *run) own(t *testing.T, s ownSpan) {
	t.Helper()
	r.spans++
	td := ptrace.NewTraces()
	span := addSpan(td, "run-a", s.trace, r.spans)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
	if !s.root {
		span.SetParentSpanID(pcommon.SpanID{9, 9, s.trace})
	}
	if s.phase != "" {
		span.Attributes().PutStr("ml.phase", s.phase)
	}
	if s.fail != "" {
		span.Status().SetCode(ptrace.StatusCodeError)
		event := span.Events().AppendEmpty()
		event.SetName("exception")
		event.Attributes().PutStr("exception.type", s.fail)
	}
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.clock.Add(-s.took)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.clock))
	require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
}

// loop takes steps of a second each under a root that is sent later.
func (r *run) loop(t *testing.T, trace byte, steps int) {
	t.Helper()
	for range steps {
		r.clock = r.clock.Add(time.Second)
		r.own(t, ownSpan{trace: trace, phase: "optimizer", took: time.Second})
	}
}

// A loop that sends no span of the whole training ends with the root around its steps.
func TestAnOwnLoopEnds(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.loop(t, 1, 10)
	assert.Equal(t, "running", state(t, r.after(t, 0)))
	r.own(t, ownSpan{trace: 1, root: true, took: 11 * time.Second})
	assert.Equal(t, "running", state(t, r.after(t, time.Second)), "more may follow")
	md := r.after(t, 2*time.Minute)
	assert.Equal(t, "ended", state(t, md))
	onsets, _ := problems(t, r.after(t, 30*time.Minute))
	assert.Empty(t, onsets)

	r.loop(t, 2, 3)
	md = r.after(t, 0)
	assert.Equal(t, "running", state(t, md))
	assert.Equal(t, int64(2), counters(md)["ml.run.attempts"], "what follows the end is another attempt")
}

// A loop whose program raises an error has failed, whatever it sends around its steps.
func TestAnOwnLoopFails(t *testing.T) {
	const oom = "torch.OutOfMemoryError"
	for name, tt := range map[string]struct {
		crash func(r *run)
		after time.Duration
		class string
	}{
		"a root around its steps": {func(r *run) {
			r.own(t, ownSpan{trace: 1, phase: "forward", fail: oom, took: time.Second})
			r.own(t, ownSpan{trace: 1, root: true, fail: oom, took: 12 * time.Second})
		}, 2 * time.Minute, oom},
		"the documented span of the training": {func(r *run) {
			r.own(t, ownSpan{trace: 1, phase: "train", fail: "ValueError", took: 12 * time.Second})
		}, time.Second, "ValueError"},
		"steps without a root": {func(r *run) {
			r.own(t, ownSpan{trace: 1, phase: "batch", fail: oom, took: time.Second})
		}, 6 * time.Minute, oom},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			logs := new(consumertest.LogsSink)
			r.connector.Shared.outlets.Add(logs)
			r.loop(t, 1, 10)
			r.after(t, 0)
			r.clock = r.clock.Add(time.Second)
			crashed := r.clock
			tt.crash(r)
			md := r.after(t, tt.after)
			assert.Equal(t, "failed", state(t, md))
			assertProblem(t, md, "trainer/run_failed/run-a", crashed)
			records := recordsOf(logs, "ml.problem")
			require.Len(t, records, 1)
			evidence, _ := records[0].Attributes().Get("ml.problem.evidence")
			assert.Contains(t, evidence.AsString(), "ended with "+tt.class)
			md = r.after(t, 30*time.Minute)
			assert.Equal(t, "failed", state(t, md))
			assertProblem(t, md, "trainer/run_failed/run-a", crashed)

			assert.Empty(t, recordsOf(logs, "ml.problem"), "it is not stale while its run is known")
			onsets, _ := problems(t, r.after(t, 20*time.Hour))
			assert.Contains(t, onsets, "trainer/run_failed/run-a", "somebody may look tomorrow")

			r.loop(t, 2, 2)
			md = r.after(t, 0)
			assert.Equal(t, "running", state(t, md))
			assertEnd(t, md, "trainer/run_failed/run-a")
		})
	}
}

// A failed step after which the loop goes on is no failure of the run.
func TestALoopThatGoesOnHasNotFailed(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for range 20 {
		r.loop(t, 1, 3)
		r.own(t, ownSpan{trace: 1, phase: "batch", fail: "ValueError", took: time.Second})
		md := r.after(t, time.Minute)
		assert.Equal(t, "running", state(t, md))
		onsets, _ := problems(t, md)
		assert.Empty(t, onsets)
	}
}

// Roots of epochs are no end of the program, once one was followed by work.
func TestRootsOfEpochs(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for epoch := range byte(5) {
		r.loop(t, epoch+1, 5)
		r.own(t, ownSpan{trace: epoch + 1, root: true, took: 6 * time.Second})
		md := r.after(t, 30*time.Second)
		assert.Equal(t, "running", state(t, md))
		assert.Equal(t, int64(1), counters(md)["ml.run.attempts"])
	}
	assert.Equal(t, "silent", state(t, r.after(t, 6*time.Minute)))
}

// A program whose processes have released their GPUs has ended; while it holds them it
// may hang, and of a host that is not read nobody knows.
func TestTheEndOfTheProcesses(t *testing.T) {
	for name, tt := range map[string]struct {
		last string
		read func(r *run)
		is   string
	}{
		"released":               {"", func(r *run) { r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: "run-a"}) }, "ended"},
		"released after a crash": {"ValueError", func(r *run) { r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: "run-a"}) }, "failed"},
		"held":                   {"", func(r *run) { r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1 << 30}) }, "stalled"},
		"not read":               {"", func(*run) {}, "silent"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			for range 10 {
				r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1 << 30})
				r.loop(t, 1, 10)
				r.after(t, 0)
			}
			if tt.last != "" {
				r.own(t, ownSpan{trace: 1, phase: "batch", fail: tt.last, took: time.Second})
			}
			md := r.every(t, 10*time.Minute, func() { tt.read(r) })
			assert.Equal(t, tt.is, state(t, md))
		})
	}
}
