package mlmetricsconnector

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// world is a run of several ranks that take steps together. Its faults are planted
// in its fields.
type world struct {
	*run
	logs  *consumertest.LogsSink
	ranks int
	// hostOf names the host of a rank, one for two ranks.
	hostOf func(rank int) string
	// load is the time that a rank loads data, rest that of the rest of the step.
	load func(rank int) time.Duration
	rest time.Duration
	// mute are ranks without telemetry, stated is what their resource says.
	mute   map[int]bool
	stated map[string]any
	// loss is that of the next step and norm that of its gradient, if it is not 0.
	loss, norm float64
	// gpu changes the reading of a rank's GPU, if it is set.
	gpu func(rank int, g *gpuMetrics)
	// unread is a host whose GPUs are not read.
	unread string
	// number is that of the step.
	number int
}

func newWorld(t *testing.T, ranks int) *world {
	w := &world{
		run: newRun(t, createDefaultConfig().(*Config)), logs: new(consumertest.LogsSink), ranks: ranks,
		hostOf: func(rank int) string { return "n" + strconv.Itoa(rank/2) },
		load:   func(int) time.Duration { return time.Second }, rest: 9 * time.Second,
		mute: map[int]bool{}, stated: map[string]any{"ml.world_size": ranks},
	}
	w.connector.Shared.outlets.Add(w.logs)
	return w
}

// send sends a span of a rank that ends at a time.
func (w *world) send(t *testing.T, rank int, phase string, from, to time.Time, attrs map[string]any) {
	t.Helper()
	w.spans++
	td := ptrace.NewTraces()
	span := addSpan(td, w.name(), byte(rank+1), w.spans)
	resource := td.ResourceSpans().At(0).Resource().Attributes()
	for key, value := range w.stated {
		require.NoError(t, resource.PutEmpty(key).FromRaw(value))
	}
	resource.PutInt("ml.rank.global", int64(rank))
	resource.PutStr("host.name", w.hostOf(rank))
	require.NoError(t, span.Attributes().FromRaw(attrs))
	span.Attributes().PutStr("ml.phase", phase)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(to))
	require.NoError(t, w.connector.ConsumeTraces(t.Context(), td))
}

func (w *world) name() string {
	if w.run.run != "" {
		return w.run.run
	}
	return "run-a"
}

// step has all ranks take steps, and emits after each.
func (w *world) step(t *testing.T, n int) {
	t.Helper()
	for range n {
		w.take(t, 1)
		w.emit(t)
	}
}

// take has all ranks take steps.
func (w *world) take(t *testing.T, n int) {
	t.Helper()
	for range n {
		w.number++
		begun := w.clock
		slowest := time.Duration(0)
		for rank := range w.ranks {
			slowest = max(slowest, w.load(rank))
		}
		w.clock = begun.Add(slowest + w.rest)
		for rank := range w.ranks {
			if w.mute[rank] {
				continue
			}
			loaded := begun.Add(w.load(rank))
			w.send(t, rank, "data_load", begun, loaded, nil)
			w.send(t, rank, "forward", loaded, loaded.Add(w.rest/3), nil)
			attrs := map[string]any{}
			if w.loss != 0 {
				attrs["ml.loss"] = w.loss
			}
			if w.norm != 0 {
				attrs["ml.gradient.norm"] = w.norm
			}
			w.send(t, rank, "optimizer", w.clock.Add(-w.rest/3), w.clock, attrs)
		}
	}
}

// wait has nothing happen for a time.
func (w *world) wait(t *testing.T, d time.Duration) {
	t.Helper()
	for range int(d / (15 * time.Second)) {
		w.clock = w.clock.Add(15 * time.Second)
		w.emit(t)
	}
}

// emit reads the GPUs and emits.
func (w *world) emit(t *testing.T) {
	t.Helper()
	for rank := range w.ranks {
		g := gpuMetrics{host: w.hostOf(rank), id: "GPU-" + strconv.Itoa(rank), run: w.name(), memory: 1 << 30, utilization: 0.9, power: 600}
		if w.gpu != nil {
			w.gpu(rank, &g)
		}
		if w.hostOf(rank) != w.unread {
			w.read(t, g)
		}
	}
	require.NoError(t, w.connector.emit(t.Context(), false))
}

// found has the records of problems that have begun since the last call, by kind.
func (w *world) found() map[string][]plog.LogRecord {
	found := map[string][]plog.LogRecord{}
	for _, record := range recordsOf(w.logs, "ml.problem") {
		if v, _ := record.Attributes().Get("ml.problem.state"); v.Str() == "began" {
			kind, _ := record.Attributes().Get("ml.problem")
			found[kind.Str()] = append(found[kind.Str()], record)
		}
	}
	return found
}

// only returns the one problem that has begun.
func (w *world) only(t *testing.T, kind string) plog.LogRecord {
	t.Helper()
	found := w.found()
	require.Len(t, found, 1)
	require.Len(t, found[kind], 1)
	return found[kind][0]
}

// texts joins the phrases of an attribute.
func texts(record plog.LogRecord, key string) string {
	v, ok := record.Attributes().Get(key)
	if !ok {
		return ""
	}
	var all []string
	for _, one := range v.Slice().All() {
		all = append(all, one.Str())
	}
	return strings.Join(all, "; ")
}

func assertOnset(t *testing.T, record plog.LogRecord, at time.Time, tolerance time.Duration) {
	t.Helper()
	onset := time.UnixMicro(int64(numberOf(t, record, "ml.problem.onset") * 1e6))
	assert.WithinDuration(t, at, onset, tolerance)
}

// A rank that stops while the others go on is missing. The run is not hung.
func TestARankIsMissing(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 20)
	w.mute[3] = true
	stopped := w.clock
	w.gpu = func(rank int, g *gpuMetrics) {
		if rank == 3 {
			g.memory = 0
		}
	}
	w.step(t, 60)
	missing := w.only(t, "rank_missing")
	assertOnset(t, missing, stopped, time.Second)
	assert.Equal(t, "began", textOf(t, missing, "ml.problem.state"))
	rank, _ := missing.Attributes().Get("ml.rank.global")
	assert.EqualValues(t, 3, rank.Int())
	assert.Equal(t, "n1", textOf(t, missing, "host.name"))
	assert.InDelta(t, 3, numberOf(t, missing, "ml.problem.value"), 0)
	assert.InDelta(t, 0.75, numberOf(t, missing, "ml.problem.telemetry.ratio"), 0)
	assert.Contains(t, texts(missing, "ml.problem.evidence"), "rank 3 (n1) last sent at")

	w.ranks = 3
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 1, 200 }
	w.wait(t, 20*time.Minute)
	hung := w.only(t, "looks_hung")
	assert.Equal(t, textOf(t, missing, "ml.problem.id"), textOf(t, hung, "ml.problem.cause"), "the others hang then")
}

// The telemetry of a rank is missing, not the rank, if its GPU works.
func TestARankWhoseGPUWorks(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 20)
	w.mute[3] = true
	w.step(t, 200)
	assert.Empty(t, w.found())
}

// Of a rank whose host sends nothing it is not known whether it works, for half an
// hour.
func TestARankOfAHostThatIsCutOff(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 20)
	w.mute[2], w.mute[3] = true, true
	w.unread = "n1"
	w.step(t, 6*29)
	assert.Empty(t, w.found())
	w.step(t, 6*2)
	assert.InDelta(t, 2, numberOf(t, w.only(t, "rank_missing"), "ml.problem.value"), 0)
}

// A span that arrives late, of a run that was stopped as a whole, does not show that
// its rank goes on without the others.
func TestALateSpanOfAStoppedRun(t *testing.T) {
	for name, tt := range map[string]struct {
		ranks  int
		unread string
	}{
		"one of two": {2, ""}, "one of four": {4, ""}, "without GPUs": {2, "n0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.ranks)
			w.unread = tt.unread
			w.step(t, 20)
			w.gpu = func(_ int, g *gpuMetrics) { g.memory, g.utilization, g.power = 0, 0, 70 }
			stopped := w.clock
			w.wait(t, 8*time.Minute)
			w.send(t, 1, "optimizer", stopped, stopped.Add(time.Second), nil)
			w.wait(t, time.Hour)
			assert.Empty(t, w.found())
		})
	}
}

// A reading of GPUs that arrives late, while their host is cut off, does not show that
// their run hangs.
func TestALateReadingOfAHostThatIsCutOff(t *testing.T) {
	w := newWorld(t, 2)
	w.step(t, 30)
	w.unread = "n0"
	cut := w.clock
	w.wait(t, 2*time.Minute)
	for rank := range 2 {
		w.metrics(t, gpuReading(gpuMetrics{
			host: "n0", id: "GPU-" + strconv.Itoa(rank), run: w.name(), memory: 1 << 30, utilization: 0.9, power: 600,
		}, cut.Add(-10*time.Second)))
	}
	w.wait(t, 10*time.Minute)
	found := w.found()
	assert.NotContains(t, found, "looks_hung")
	assert.Contains(t, found, "host_silent")
}

// A rank that never sends is missing once the first step is overdue.
func TestARankThatNeverSends(t *testing.T) {
	w := newWorld(t, 4)
	w.mute[2] = true
	began := w.clock
	w.step(t, 179)
	assert.Empty(t, w.found())
	w.step(t, 5)
	missing := w.only(t, "rank_missing")
	assertOnset(t, missing, began, 20*time.Second)
	assert.Contains(t, texts(missing, "ml.problem.evidence"), "1 of 4 ranks have never sent: 2")

	alone := newWorld(t, 4)
	alone.mute = map[int]bool{1: true, 2: true, 3: true}
	alone.step(t, 300)
	assert.Empty(t, alone.found(), "only the first rank sends")
}

// Ranks that a smaller world has no longer, and those that end, are not missing.
func TestRanksThatLeave(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 20)
	w.stated["ml.world_size"] = 3
	w.mute[3] = true
	w.step(t, 100)
	w.send(t, 2, "train", w.clock, w.clock, nil)
	w.mute[2] = true
	w.stated["ml.world_size"] = 3
	w.step(t, 100)
	assert.Empty(t, w.found())
}

// A hang is confirmed by GPUs that wait, and names the rank that stopped first.
func TestAHangIsConfirmed(t *testing.T) {
	w := newWorld(t, 4)
	w.step(t, 30)
	w.clock = w.clock.Add(time.Second)
	for rank := range 4 {
		w.send(t, rank, "data_load", w.clock.Add(-time.Second), w.clock, nil)
	}
	hung := w.clock.Add(3 * time.Second)
	for rank := range 3 {
		w.send(t, rank, "forward", w.clock, hung, nil)
	}
	w.gpu = func(rank int, g *gpuMetrics) {
		if g.utilization, g.power = 1, 200; rank == 3 {
			g.utilization, g.power = 0, 90
		}
	}
	w.wait(t, 6*time.Minute)
	found := w.only(t, "looks_hung")
	assertOnset(t, found, hung, 5*time.Second)
	evidence := texts(found, "ml.problem.evidence")
	assert.Contains(t, evidence, "confirmed by 3 GPUs that are busy at 100 % and 200 W, up to 58")
	assert.Contains(t, evidence, "confirmed by 1 GPU at 0 %")
	assert.Contains(t, evidence, "rank 3 (n1) last finished data_load")
	assert.Contains(t, evidence, "3 ranks last finished forward")
	rank, _ := found.Attributes().Get("ml.rank.global")
	assert.EqualValues(t, 3, rank.Int())
	assert.InDelta(t, 4*numberOf(t, found, "ml.problem.value")/3600, numberOf(t, found, "ml.problem.gpu_hours"), 0.1)
}

// GPUs that are busy from the beginning, at little of the power that they may take,
// wait for each other.
func TestAHangBeforeTheFirstStep(t *testing.T) {
	for mayTake, hangs := range map[float64]bool{700: true, 300: false} {
		w := newWorld(t, 2)
		w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power, g.mayTake = 1, 210, mayTake }
		for rank := range 2 {
			w.send(t, rank, "data_load", w.clock, w.clock.Add(time.Second), nil)
		}
		w.wait(t, 40*time.Minute)
		assert.Len(t, w.found(), map[bool]int{true: 1}[hangs], "%v W", mayTake)
	}
}

// A run whose GPUs work as before does something that it has no spans for. After an hour
// it looks hung all the same.
func TestAHangThatItsGPUsContradict(t *testing.T) {
	w := newWorld(t, 2)
	w.step(t, 30)
	w.wait(t, 59*time.Minute)
	assert.Empty(t, w.found())
	w.wait(t, 2*time.Minute)
	assert.Contains(t, texts(w.only(t, "looks_hung"), "ml.problem.evidence"), "not confirmed by 2 GPUs that are busy")
}

// A run that has validated for long may do so again. GPUs that wait for each other
// do not validate.
func TestALongValidation(t *testing.T) {
	idle := func(_ int, g *gpuMetrics) { g.utilization, g.power = 0, 100 }
	w := newWorld(t, 2)
	w.step(t, 30)
	begun := w.clock
	w.wait(t, 4*time.Minute+30*time.Second)
	w.send(t, 0, "validation", begun, w.clock, nil)
	w.step(t, 30)
	w.gpu = idle
	w.wait(t, 24*time.Minute)
	assert.Empty(t, w.found())
	w.wait(t, 2*time.Minute)
	w.only(t, "looks_hung")
}

// A run that is preempted and begins again is not hung.
func TestAPreemptedRun(t *testing.T) {
	w := newWorld(t, 2)
	w.step(t, 30)
	w.gpu = func(_ int, g *gpuMetrics) { g.memory = 0 }
	w.wait(t, 20*time.Minute)
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 1, 150 }
	w.wait(t, 29*time.Minute)
	assert.Empty(t, w.found(), "it may load a checkpoint")
	w.wait(t, 3*time.Minute)
	w.only(t, "looks_hung")
}

// A run whose last spans a new collector received, and that then takes GPUs, is not
// hung before it has held them for its patience.
func TestAPreemptedRunOfWhichTheReleaseWasNotSeen(t *testing.T) {
	for name, tt := range map[string]struct {
		use, power float64
		quiet      time.Duration
	}{
		"its GPUs do nothing": {0, 90, 24*time.Minute + 45*time.Second},
		"its GPUs work":       {0.9, 600, 59*time.Minute + 45*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.unread = "n0"
			w.step(t, 30)
			w.wait(t, 39*time.Minute)
			w.unread = ""
			w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = tt.use, tt.power }
			w.wait(t, tt.quiet)
			assert.Empty(t, w.found(), "it may load a checkpoint")
			w.wait(t, time.Minute)
			w.only(t, "looks_hung")
		})
	}
}

// The first steps after a preemption take longer, also those of a client whose attempts
// have no number and no trace. A run that stays slow is slow.
func TestTheFirstStepsAfterAPreemption(t *testing.T) {
	w := newWorld(t, 2)
	w.step(t, 100)
	w.gpu = func(_ int, g *gpuMetrics) { g.memory = 0 }
	w.wait(t, 20*time.Minute)
	w.gpu = nil
	w.load = func(int) time.Duration { return 31 * time.Second }
	w.step(t, 18)
	assert.Empty(t, w.found())
	w.step(t, 18)
	w.only(t, "slow")
}

// A run is slow only after its steps have taken longer for a while. The phase that
// grew is named, and checkpoints do not count.
func TestASlowRunNamesThePhase(t *testing.T) {
	w := newWorld(t, 4)
	for n := range 30 {
		w.step(t, 4)
		if n%5 == 4 {
			from := w.clock
			w.clock = w.clock.Add(time.Minute)
			for rank := range 4 {
				w.send(t, rank, "checkpoint", from, w.clock, nil)
			}
		}
	}
	assert.Empty(t, w.found())
	w.load = func(rank int) time.Duration {
		if w.hostOf(rank) == "n1" {
			return 6 * time.Second
		}
		return time.Second
	}
	began := w.clock
	w.step(t, 40)
	found := w.only(t, "slow")
	assertOnset(t, found, began, 31*time.Second) // the last steps are not over
	assert.InDelta(t, 15, numberOf(t, found, "ml.problem.value"), 0.1)
	assert.InDelta(t, 10, numberOf(t, found, "ml.problem.usual"), 0.1)
	assert.Contains(t, texts(found, "ml.problem.evidence"), "data_load 1 → 6 s, 2 of 4 ranks, all on n1")
	assert.Equal(t, "checkpoint", texts(found, "ml.problem.excluded"))
	assert.Contains(t, textOf(t, found, "ml.problem.next"), "input")
}

// Steps that take longer for less than stall_timeout are no problem, however long the
// median of the recent ones remembers them.
func TestAShortContention(t *testing.T) {
	w := newWorld(t, 2)
	w.step(t, 120)
	w.rest = 14 * time.Second
	w.step(t, 16)
	w.rest = 9 * time.Second
	w.step(t, 60)
	assert.Empty(t, w.found())
}

// A GPU whose clocks are lowered when the steps of its run become slower is
// throttled. One that always is, is not.
func TestAThrottledGPU(t *testing.T) {
	w := newWorld(t, 2)
	reason := func(rank int, reason string) func(int, *gpuMetrics) {
		return func(of int, g *gpuMetrics) {
			if of == rank {
				g.throttled = reason
			}
		}
	}
	w.gpu = reason(0, "sw_power_cap")
	w.step(t, 200)
	w.rest = 11 * time.Second
	w.step(t, 60)
	assert.Empty(t, w.found(), "its power limit is its usual one")

	w = newWorld(t, 2)
	w.step(t, 200)
	w.gpu = reason(1, "hw_thermal_slowdown")
	w.step(t, 100)
	assert.Empty(t, w.found(), "nothing is slower")

	w = newWorld(t, 2)
	w.step(t, 200)
	began := w.clock
	w.gpu, w.rest = reason(1, "hw_thermal_slowdown"), 11*time.Second
	w.step(t, 60)
	found := w.only(t, "throttled")
	assertOnset(t, found, began, 30*time.Second)
	assert.Equal(t, "GPU-1", textOf(t, found, "hw.id"))
	assert.Contains(t, texts(found, "ml.problem.evidence"), "hw_thermal_slowdown")
}

// A checkpoint that is missing is overdue.
func TestACheckpointIsOverdue(t *testing.T) {
	w := newWorld(t, 2)
	for range 5 {
		w.step(t, 30)
		w.send(t, 0, "checkpoint", w.clock.Add(-time.Second), w.clock, nil)
	}
	last := w.clock
	w.step(t, 60)
	assert.Empty(t, w.found())
	w.step(t, 2)
	found := w.only(t, "checkpoint_overdue")
	assertOnset(t, found, last.Add(300*time.Second), 10*time.Second)
	assert.InDelta(t, 610, numberOf(t, found, "ml.problem.value"), 11)
	assert.InDelta(t, 300, numberOf(t, found, "ml.problem.usual"), 1)
}

// A spike is a mark once, a loss that rises has diverged, and one that is not finite
// is a ticket.
func TestLosses(t *testing.T) {
	w := newWorld(t, 2)
	for n := range 300 {
		w.loss = 2 + 0.02*math.Sin(float64(n))
		w.step(t, 1)
	}
	assert.Empty(t, w.found())
	w.loss = 7
	began := w.clock
	w.step(t, 4)
	spike := w.only(t, "loss_spike")
	assertOnset(t, spike, began, 11*time.Second)
	assert.Equal(t, plog.SeverityNumberInfo, spike.SeverityNumber())
	assert.InDelta(t, 7, numberOf(t, spike, "ml.problem.value"), 0)
	assert.InDelta(t, 2, numberOf(t, spike, "ml.problem.usual"), 0.05)
	for n := range 100 {
		w.loss = 2 + 0.02*math.Sin(float64(n))
		w.step(t, 1)
	}
	assert.Empty(t, w.found())

	for range 150 {
		w.loss *= 1.01
		w.step(t, 1)
	}
	w.only(t, "loss_diverged")
	w.loss = math.NaN()
	began = w.clock
	w.step(t, 5)
	bad := w.only(t, "nonfinite")
	assertOnset(t, bad, began, 11*time.Second)
	assert.Equal(t, plog.SeverityNumberWarn, bad.SeverityNumber())
	onsets, _ := problems(t, w.after(t, 0))
	assert.Len(t, onsets, 1, "a mark has no series")
}

// A norm of the gradient that is much higher than before is a mark, and so is one that is not
// finite any more, while losses stay. Where losses are not finite either, they are the problem.
func TestNormsOfTheGradient(t *testing.T) {
	w := newWorld(t, 2)
	w.loss = 2
	for range 20 {
		w.norm = math.Inf(1)
		w.step(t, 1)
	}
	for n := range 300 {
		w.loss, w.norm = 2+0.02*math.Sin(float64(n)), 0.8+0.1*math.Sin(float64(n))
		if n%100 < 2 {
			w.norm *= 20
		}
		if n%100 == 50 {
			w.norm = math.NaN()
		}
		w.step(t, 1)
	}
	assert.Empty(t, w.found(), "the scale of losses is found, and one or two batches are others")
	md := w.after(t, 0)
	assert.InDelta(t, w.norm, find(t, md, "ml.gradient.norm").Gauge().DataPoints().At(0).DoubleValue(), 0)

	began := w.clock
	w.norm = 8
	w.step(t, 4)
	spike := w.only(t, "loss_spike")
	assertOnset(t, spike, began, 11*time.Second)
	assert.Equal(t, plog.SeverityNumberInfo, spike.SeverityNumber())
	assert.Contains(t, texts(spike, "ml.problem.evidence"), "norm of the gradient 8, 0.8")
	fine := func(steps int, norm float64) {
		for n := range steps {
			w.loss, w.norm = 2+0.02*math.Sin(float64(n)), norm
			w.step(t, 1)
		}
	}
	fine(200, 0.8)
	assert.Empty(t, w.found())

	began = w.clock
	fine(31, math.NaN())
	assert.Empty(t, w.found())
	fine(1, math.NaN())
	broken := w.only(t, "loss_diverged")
	assertOnset(t, broken, began, 11*time.Second)
	assert.Equal(t, plog.SeverityNumberInfo, broken.SeverityNumber())
	assert.Equal(t, "the newest 32 norms of the gradient are all NaN or infinite", texts(broken, "ml.problem.evidence"))
	fine(1, 0.8)
	w.loss, w.norm = math.NaN(), math.NaN()
	w.step(t, 50)
	w.only(t, "nonfinite")
}

// A host whose ranks make all wait now and then is named. What all hosts wait for is none's.
func TestAHostThatIsSlowInSomeSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		hosts   int
		late    func(number, host int) bool
		seconds int
		found   bool
	}{
		"one host in each tenth step":      {3, func(number, host int) bool { return host == 1 && number%10 == 0 }, 10, true},
		"one host, for a short time":       {3, func(number, host int) bool { return host == 1 && number%10 == 0 }, 3, false},
		"all hosts in each tenth step":     {3, func(number, _ int) bool { return number%10 == 0 }, 10, false},
		"most hosts in each tenth step":    {4, func(number, host int) bool { return host > 0 && number%10 == 0 }, 10, false},
		"each host in each thirtieth step": {3, func(number, host int) bool { return number%30 == 10*host }, 10, false},
		"the only host":                    {1, func(number, _ int) bool { return number%10 == 0 }, 10, false},
		"one host in each fortieth step":   {3, func(number, host int) bool { return host == 1 && number%40 == 0 }, 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2*tt.hosts)
			w.load = func(rank int) time.Duration {
				if w.number > 200 && tt.late(w.number, rank/2) {
					return time.Duration(1+tt.seconds) * time.Second
				}
				return time.Second
			}
			w.step(t, 200)
			began := w.clock
			w.step(t, 350)
			if !tt.found {
				assert.Empty(t, w.found())
				return
			}
			found := w.only(t, "slow")
			assertOnset(t, found, began, 2*time.Minute)
			assert.Equal(t, "n1", textOf(t, found, "host.name"))
			assert.InDelta(t, 11, numberOf(t, found, "ml.problem.value"), 0.1)
			assert.InDelta(t, 10, numberOf(t, found, "ml.problem.usual"), 0.1)
			assert.Regexp(t, `n1: in \d\d of 64 groups of 10 steps it loads data or does the forward pass for longer in one, other hosts in 0`, texts(found, "ml.problem.evidence"))
			w.load = func(int) time.Duration { return time.Second }
			w.step(t, 120)
			assert.Empty(t, w.found())
		})
	}
}

// After a restart, a loss and steps may be higher than before.
func TestLossesAfterARestart(t *testing.T) {
	w := newWorld(t, 2)
	w.stated["ml.run.attempt"] = 0
	w.loss = 2
	w.step(t, 300)
	w.stated["ml.run.attempt"] = 1
	w.loss, w.rest = 7, 30*time.Second
	w.step(t, 10)
	w.rest = 9 * time.Second
	w.step(t, 300)
	assert.Empty(t, w.found())
}

// Memory that grows towards its limit is a mark.
func TestMemoryGrows(t *testing.T) {
	w := newWorld(t, 2)
	used := int64(40 << 30)
	w.gpu = func(rank int, g *gpuMetrics) {
		if g.used, g.limit = 40<<30, 80<<30; rank == 1 {
			used += 20 << 20
			g.used = used
		}
	}
	w.step(t, 6*45)
	grows := w.only(t, "memory_growth")
	assert.Equal(t, "GPU-1", textOf(t, grows, "hw.id"))
	assert.Contains(t, texts(grows, "ml.problem.evidence"), "grows by 7.0 GiB an hour")
}

// A host whose ranks are slow in two runs is a slow host.
func TestASlowHostOfTwoRuns(t *testing.T) {
	w := newWorld(t, 6)
	w.hostOf = func(rank int) string { return "n" + strconv.Itoa(rank/2) }
	w.load = func(rank int) time.Duration {
		if rank/2 == 1 {
			return 3 * time.Second
		}
		return time.Second
	}
	w.step(t, 200)
	assert.Empty(t, w.found(), "one run may have other reasons")
	w.run.run = "run-b"
	w.step(t, 200)
	found := w.only(t, "slow_host")
	assert.Equal(t, "n1", textOf(t, found, "host.name"))
	assert.InDelta(t, 3, numberOf(t, found, "ml.problem.value")/numberOf(t, found, "ml.problem.usual"), 0.01)
}

// oneSlow has a run in which one rank computes longer than the others, and somebody else's
// program each time.
func (w *world) oneSlow(t *testing.T, slow, number int) {
	t.Helper()
	w.run.run, w.stated["service.name"] = "run-"+strconv.Itoa(number), "trainer-"+strconv.Itoa(number)
	w.load = func(rank int) time.Duration {
		if rank == slow {
			return 3 * time.Second
		}
		return time.Second
	}
	w.gpu = func(rank int, g *gpuMetrics) { g.pid, g.rank = 1000+int64(rank), int64(rank) }
	w.step(t, 200)
}

// A problem begins from its threshold on, and lasts as its rule says.
func TestThresholds(t *testing.T) {
	w := newWorld(t, 2)
	threshold := func(slow float64) { w.connector.cfg.Thresholds = map[string]float64{"slow": slow} }
	threshold(2.5)
	w.step(t, 120)
	w.rest *= 2
	w.step(t, 60)
	assert.Empty(t, w.found())
	threshold(1.5)
	w.step(t, 1)
	assert.InDelta(t, 1.9, numberOf(t, w.only(t, "slow"), "ml.problem.value")/10, 0.01)
	threshold(10)
	w.step(t, 5)
	for _, record := range recordsOf(w.logs, "ml.problem") {
		assert.NotEqual(t, "ended", textOf(t, record, "ml.problem.state"))
	}
}

// driver has a host say which version its driver has.
func (w *world) driver(t *testing.T, host, version string) {
	t.Helper()
	md := pmetric.NewMetrics()
	attrs := md.ResourceMetrics().AppendEmpty().Resource().Attributes()
	attrs.PutStr("host.name", host)
	attrs.PutStr("hw.driver_version", version)
	w.metrics(t, md)
}

// onTwoDrivers has three programs train on each of twelve hosts, which have two drivers, with
// one of which a step takes longer; and the next day begin.
func (w *world) onTwoDrivers(t *testing.T, longer time.Duration) {
	t.Helper()
	for n := range 36 {
		host, version := "n"+strconv.Itoa(n/3), "570."+strconv.Itoa(n/3%2)
		w.hostOf = func(int) string { return host }
		w.run.run, w.stated["service.name"] = "run-"+strconv.Itoa(n), "trainer-"+strconv.Itoa(n%3)
		w.driver(t, host, version)
		if w.rest = 9*time.Second + time.Duration(n)*time.Millisecond; n/3%2 == 1 {
			w.rest += longer
		}
		w.emit(t)
		w.take(t, 80)
		w.step(t, 2)
	}
	w.clock = w.clock.Add(24 * time.Hour)
	w.emit(t)
}

// A driver with which the steps of everybody's runs take longer is reported, once for the fleet.
func TestADriverThatCostsTime(t *testing.T) {
	w := newWorld(t, 1)
	w.onTwoDrivers(t, 500*time.Millisecond)
	found := w.found()["lemon_version"]
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Body().Str(), "The fleet: lemon version since ")
	assert.Contains(t, texts(found[0], "ml.problem.evidence"), "driver 570.1: a step takes 1.05 times as long as without it; 18 runs on 6 hosts with it, compared with those of the same 3 people or programs on 6 without it")
}

// A host of which a rank was slow in three runs of several people is a lemon, with the GPU of
// this rank, and the collector may restart meanwhile. Rank 0 may be slow for other reasons.
func TestALemonOfThreeRuns(t *testing.T) {
	for _, slow := range []int{3, 0} {
		w := newWorld(t, 20)
		w.oneSlow(t, slow, 0)
		w.oneSlow(t, slow, 1)
		data, err := w.connector.Shared.Export()
		require.NoError(t, err)
		assert.NotContains(t, w.found(), "lemon_host")
		again := newWorld(t, 20)
		again.clock = w.clock.Add(time.Hour)
		require.NoError(t, again.connector.Shared.Import(data))
		again.oneSlow(t, slow, 2)
		lemons := again.found()["lemon_host"]
		if slow == 0 {
			assert.Empty(t, lemons)
			continue
		}
		require.Len(t, lemons, 1)
		assert.Equal(t, "n1", textOf(t, lemons[0], "host.name"))
		assert.Equal(t, "GPU-3", textOf(t, lemons[0], "hw.id"))
		assert.Contains(t, texts(lemons[0], "ml.problem.evidence"), "the cause in 3 of 3 runs, of 3 people or programs")
		assert.Contains(t, texts(lemons[0], "ml.problem.evidence"), "slow 3; runs: trainer-0/run-0, trainer-1/run-1, trainer-2/run-2; GPU GPU-3 in all 3")
		assert.Contains(t, textOf(t, lemons[0], "ml.problem.next"), "scontrol update nodename=n1 state=drain")
	}
}

// A slow host is reported once 60 steps or so are slow, with the time of the first.
func TestTheOnsetOfASlowHost(t *testing.T) {
	w := newWorld(t, 6)
	slow := func(rank int) time.Duration { return time.Second + 2*time.Second*time.Duration(rank/2%2) }
	w.load = slow
	w.step(t, 200)
	fast := newWorld(t, 6).load
	w.run.run, w.load = "run-b", fast
	w.step(t, 130)
	began := w.clock
	w.load = slow
	w.step(t, 80)
	assertOnset(t, w.only(t, "slow_host"), began, 20*12*time.Second)
}

// A healthy run that validates, saves and restarts has no problem.
func TestAHealthyRun(t *testing.T) {
	w := newWorld(t, 4)
	for n := range 60 {
		w.stated["ml.run.attempt"] = n / 25
		w.loss = 2 * math.Pow(0.99, float64(n))
		w.step(t, 10)
		from := w.clock
		w.clock = w.clock.Add(2 * time.Minute)
		phase := []string{"validation", "checkpoint"}[n%2]
		w.send(t, 0, phase, from, w.clock, nil)
	}
	assert.Empty(t, w.found())
}
