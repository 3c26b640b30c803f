package mlmetricsconnector

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// gpuHolders is what the gpu receiver and ml_enrich say of a run that has so many
// bytes of a GPU.
func gpuHolders(id string, bytes int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("nvidia.gpu.workload.memory.usage")
	point := m.SetEmptySum().DataPoints().AppendEmpty()
	point.SetIntValue(bytes)
	point.Attributes().PutStr("ml.run.id", id)
	return md
}

// ofRank is a metric of a rank of a run, of none where it is negative.
func ofRank(id string, rank int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "trainer")
	rm.Resource().Attributes().PutStr("ml.run.id", id)
	if rank >= 0 {
		rm.Resource().Attributes().PutInt("ml.rank.global", rank)
	}
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("train.step.count")
	m.SetEmptySum().DataPoints().AppendEmpty().SetIntValue(0)
	return md
}

func (r *run) holdsGPU(t *testing.T, id string, bytes int64) {
	t.Helper()
	r.metrics(t, gpuHolders(id, bytes))
}

func (r *run) sendsMetrics(t *testing.T, id string, rank int64) {
	t.Helper()
	r.metrics(t, ofRank(id, rank))
}

func (r *run) metrics(t *testing.T, md pmetric.Metrics) {
	t.Helper()
	w := &watcher{now: func() time.Time { return r.clock }}
	w.Shared = r.connector.Shared
	require.NoError(t, w.ConsumeMetrics(t.Context(), md))
}

// reads gives log records to the instance that receives them.
func (r *run) reads(t *testing.T, ld plog.Logs) {
	t.Helper()
	w := &watcher{now: func() time.Time { return r.clock }}
	w.Shared = r.connector.Shared
	require.NoError(t, w.ConsumeLogs(t.Context(), ld))
}

// every moves the clock minute by minute for d, does something each minute and
// emits, and returns the last emission.
func (r *run) every(t *testing.T, d time.Duration, what func()) pmetric.Metrics {
	t.Helper()
	for range int(d / time.Minute) {
		r.clock = r.clock.Add(time.Minute)
		what()
		require.NoError(t, r.connector.emit(t.Context(), false))
	}
	return lastOf(t, r.sink)
}

// A collective's set-up that hangs sends metrics and no span, and holds its GPUs.
func TestARunThatHangsBeforeItsFirstSpan(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	alive := func() {
		r.holdsGPU(t, "run-a", 1<<30)
		r.sendsMetrics(t, "run-a", 3)
	}
	first := r.clock.Add(time.Minute)
	md := r.every(t, 30*time.Minute, alive)
	assert.Equal(t, "unknown", state(t, md))
	md = r.every(t, 3*time.Hour, alive)
	assert.Equal(t, "stalled", state(t, md), "and stays so")
	assertProblem(t, md, "trainer/looks_hung/run-a", first)
	_, ranked := find(t, md, "ml.run.state").Sum().DataPoints().At(0).Attributes().Get("ml.rank.global")
	assert.False(t, ranked, "the state is the run's")

	r.resource = map[string]any{"ml.rank.global": 3}
	r.work(t, "forward", time.Second)
	r.work(t, "optimizer", time.Second)
	assert.Equal(t, "running", state(t, r.every(t, time.Minute, alive)), "it steps after all")
}

// One that loaded data and then hangs is judged by its spans.
func TestARunThatHangsBeforeItsFirstStep(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "data_load", time.Second)
	alive := func() { r.holdsGPU(t, "run-a", 1<<30) }
	assert.Equal(t, "unknown", state(t, r.every(t, 29*time.Minute, alive)))
	assert.Equal(t, "stalled", state(t, r.every(t, 2*time.Minute, alive)))
	r.work(t, "data_load", time.Second)
	assert.Equal(t, "unknown", state(t, r.every(t, time.Minute, alive)), "it goes on, without a step")
}

// What is no sign of a training that hangs has no such state.
func TestWhatDoesNotHang(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout time.Duration
		each    func(*testing.T, *run)
	}{
		"no GPU":                      {30 * time.Minute, func(t *testing.T, r *run) { r.sendsMetrics(t, "run-a", 0) }},
		"a GPU without memory":        {30 * time.Minute, func(t *testing.T, r *run) { r.sendsMetrics(t, "run-a", 0); r.holdsGPU(t, "run-a", 0) }},
		"a GPU of another run":        {30 * time.Minute, func(t *testing.T, r *run) { r.sendsMetrics(t, "run-a", 0); r.holdsGPU(t, "run-b", 1) }},
		"no telemetry of its own":     {30 * time.Minute, func(t *testing.T, r *run) { r.holdsGPU(t, "run-a", 1) }},
		"a server, which has no rank": {30 * time.Minute, func(t *testing.T, r *run) { r.sendsMetrics(t, "run-a", -1); r.holdsGPU(t, "run-a", 1) }},
		"nobody asks":                 {0, func(t *testing.T, r *run) { r.sendsMetrics(t, "run-a", 0); r.holdsGPU(t, "run-a", 1) }},
		"spans of an evaluation": {30 * time.Minute, func(t *testing.T, r *run) {
			r.work(t, "forward", time.Second)
			r.holdsGPU(t, "run-a", 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.FirstStepTimeout = tt.timeout
			r := newRun(t, cfg)
			for range 120 {
				r.clock = r.clock.Add(time.Minute)
				tt.each(t, r)
				require.NoError(t, r.connector.emit(t.Context(), false))
			}
			for _, md := range r.sink.AllMetrics() {
				assert.Equal(t, "unknown", state(t, md))
			}
		})
	}
}

// A run that hangs is shown as such, with all that is known of it, for as long as
// its processes hold GPUs, and metrics_expiration longer. Its problem lasts for a day
// after the last reading of its GPUs.
func TestAHungRunStaysUntilItsProcessesGo(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "forward", time.Second)
	r.work(t, "optimizer", time.Second)
	alive := func() { r.holdsGPU(t, "run-a", 1<<30) }
	all := r.every(t, 10*time.Minute, alive)
	assert.Equal(t, "stalled", state(t, all))
	md := r.every(t, 6*time.Hour, alive)
	assert.Equal(t, "stalled", state(t, md))
	assert.Equal(t, all.DataPointCount(), md.DataPointCount(), "nothing of it has expired")
	assert.Equal(t, int64(1), counters(md)["ml.steps"])

	r.every(t, 2*time.Hour, func() {})
	assert.Empty(t, r.connector.clocks.Keep())
	md = r.every(t, 21*time.Hour, func() {})
	assert.Equal(t, 1, md.DataPointCount(), "nothing else of it is left")
	onsets, _ := problems(t, md)
	assert.Contains(t, onsets, "trainer/looks_hung/run-a")
	r.every(t, 2*time.Hour, func() {})
	emitted := len(r.sink.AllMetrics())
	r.every(t, time.Hour, func() {})
	assert.Len(t, r.sink.AllMetrics(), emitted, "its processes are gone")
}

// A series that the client of a run sends itself ends, whether the run holds GPUs or
// not: a name has one writer.
func TestAHungRunHasOneWriter(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.connector.store.Exclude(&r.connector.Shared.seen.Silences)
	r.work(t, "optimizer", time.Second)
	alive := func() { r.holdsGPU(t, "run-a", 1) }
	r.every(t, time.Minute, alive)
	own := ofRank("run-a", 0)
	own.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("ml.steps")
	r.metrics(t, own)
	steps := find(t, r.every(t, time.Minute, alive), "ml.steps").Sum().DataPoints()
	assert.True(t, steps.At(0).Flags().NoRecordedValue())
}

// A new run takes the place of one that has ended, else of one that is silent, and
// never of one that steps or looks hung.
func TestWhichRunGivesWay(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxRuns, cfg.MetricsExpiration = 4, 24*time.Hour
	r := newRun(t, cfg)
	of := func(id string, phases ...string) {
		r.run = id
		for _, phase := range phases {
			r.work(t, phase, time.Second)
		}
	}
	live := func(md pmetric.Metrics) (ids []string) {
		for m := range metricsOf(md) {
			if m.Name() != "ml.steps" {
				continue
			}
			// The end of a series is a metric of its own.
			for _, p := range m.Sum().DataPoints().All() {
				if id, ok := p.Attributes().Get("ml.run.id"); ok && !p.Flags().NoRecordedValue() {
					ids = append(ids, id.Str())
				}
			}
		}
		return ids
	}
	of("hung", "optimizer")
	of("silent", "optimizer")
	of("ended", "optimizer", "train")
	alive := func() {
		r.holdsGPU(t, "hung", 1<<30)
		of("steps", "optimizer")
	}
	alive()
	r.every(t, 20*time.Minute, alive)

	of("new-1", "optimizer")
	assert.ElementsMatch(t, []string{"hung", "silent", "steps", "new-1"}, live(r.every(t, time.Minute, alive)))
	of("new-2", "optimizer")
	assert.ElementsMatch(t, []string{"hung", "steps", "new-1", "new-2"}, live(r.every(t, time.Minute, alive)))
	of("new-1", "optimizer")
	of("new-2", "optimizer")
	of("new-3", "optimizer")
	md := r.every(t, time.Minute, alive)
	assert.ElementsMatch(t, []string{"hung", "steps", "new-1", "new-2"}, live(md), "none gives way")
	assert.Equal(t, int64(1+24+1+1+1+2), counters(md)["ml.steps"], "what was refused is added up")
}

// However many runs come, no more are live than allowed, and those that look hung
// are all there.
func TestAFloodOfRuns(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxRuns = 20
	r := newRun(t, cfg)
	for n := range 10 {
		r.run = "hung-" + strconv.Itoa(n)
		r.work(t, "optimizer", time.Second)
	}
	alive := func() {
		for n := range 10 {
			r.holdsGPU(t, "hung-"+strconv.Itoa(n), 1)
		}
	}
	n := 0
	md := r.every(t, time.Hour, func() {
		alive()
		for range 50 {
			n++
			r.run = "flood-" + strconv.Itoa(n)
			r.work(t, "optimizer", time.Millisecond)
		}
	})
	hung, live := 0, 0
	var points []pmetric.NumberDataPoint
	for m := range metricsOf(md) {
		if m.Name() == "ml.run.state" {
			for _, p := range m.Sum().DataPoints().All() {
				points = append(points, p)
			}
		}
	}
	for _, p := range points {
		name, _ := p.Attributes().Get("ml.run.state")
		if id, _ := p.Attributes().Get("ml.run.id"); p.IntValue() == 1 {
			live++
			if name.Str() == "stalled" && id.Str()[:4] == "hung" {
				hung++
			}
		}
	}
	assert.Equal(t, 10, hung)
	assert.LessOrEqual(t, live, 20)
	assert.LessOrEqual(t, r.connector.store.Runs(), int64(20))
}

// However many runs hold GPUs, few are remembered, and none for long.
func TestWhatIsSeenInMetricsIsBounded(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for n := range 8192 + 100 {
		r.holdsGPU(t, strconv.Itoa(n), 1)
	}
	assert.Len(t, r.connector.Shared.seen.Holders(), 8192)
	r.clock = r.clock.Add(5*time.Minute + time.Second)
	require.NoError(t, r.connector.emit(t.Context(), false))
	assert.Empty(t, r.connector.Shared.seen.Holders())
}
