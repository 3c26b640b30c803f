package mlmetricsconnector

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// gauges has the points of a series by their service and the values of their
// labels, and the ends of series.
func gauges(t *testing.T, md pmetric.Metrics, name string) (values map[string]float64, ended []string) {
	t.Helper()
	values = map[string]float64{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, p := range mlattr.NumberPoints(m).All() {
					parts := []string{""}
					if service, ok := rm.Resource().Attributes().Get("service.name"); ok {
						parts[0] = service.Str()
					}
					if namespace, ok := rm.Resource().Attributes().Get("service.namespace"); ok {
						parts[0] = namespace.Str() + "/" + parts[0]
					}
					for _, label := range []string{"ml.problem", "ml.window", "ml.run.state", "ml.run.bound", "ml.notice", "hw.id", "host.name", "ml.run.id"} {
						if v, ok := p.Attributes().Get(label); ok {
							parts = append(parts, v.Str())
						}
					}
					key := strings.Join(parts, "/")
					if p.Flags().NoRecordedValue() {
						ended = append(ended, key)
					} else {
						values[key], _ = mlattr.Number(p)
					}
				}
			}
		}
	}
	return values, ended
}

// problems has the onset of each problem, and those that end.
func problems(t *testing.T, md pmetric.Metrics) (onsets map[string]time.Time, ended []string) {
	t.Helper()
	values, ended := gauges(t, md, "ml.problem.onset.timestamp")
	onsets = map[string]time.Time{}
	for key, seconds := range values {
		onsets[key] = time.UnixMicro(int64(seconds * 1e6)).UTC()
	}
	return onsets, ended
}

// assertProblem asserts that there is one problem, and when it began.
func assertProblem(t *testing.T, md pmetric.Metrics, name string, onset time.Time) {
	t.Helper()
	onsets, _ := problems(t, md)
	require.Len(t, onsets, 1)
	require.Contains(t, onsets, name)
	assert.WithinDuration(t, onset, onsets[name], time.Millisecond)
}

// assertEnd asserts that a problem ends with an emission, once.
func assertEnd(t *testing.T, md pmetric.Metrics, name string) {
	t.Helper()
	onsets, ended := problems(t, md)
	assert.Empty(t, onsets)
	assert.Equal(t, []string{name}, ended)
}

// gpuMetrics is a reading of one GPU, of the metrics that have a value in it.
type gpuMetrics struct {
	host, id, run   string
	memory          int64
	utilization, sm float64
	busy            float64
	failed          bool
	// power and mayTake are in watts, used and limit are bytes, and throttled is a
	// reason.
	power       float64
	mayTake     float64
	used, limit int64
	throttled   string
	// index is the driver's, pid that of a process with a rank, user whose it is, and
	// recovery what the driver asks for.
	index, pid, rank, recovery int64
	user                       string
}

// read sends a reading.
func (r *run) read(t *testing.T, g gpuMetrics) {
	t.Helper()
	r.metrics(t, gpuReading(g, r.clock))
}

// gpuReading is a reading of a GPU, as the gpu receiver and ml_enrich send it.
func gpuReading(g gpuMetrics, now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	point := func(name string, sum bool) pmetric.NumberDataPoint {
		m := ms.AppendEmpty()
		m.SetName(name)
		if sum {
			m.SetEmptySum()
		} else {
			m.SetEmptyGauge()
		}
		p := mlattr.NumberPoints(m).AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(now))
		p.Attributes().PutStr("hw.id", g.id)
		p.Attributes().PutStr("host.name", g.host)
		p.Attributes().PutInt("nvidia.gpu.index", g.index)
		return p
	}
	general := func(p pmetric.NumberDataPoint, value float64) {
		p.Attributes().PutStr("hw.gpu.task", "general")
		p.SetDoubleValue(value)
	}
	if g.memory > 0 {
		p := point("nvidia.gpu.workload.memory.usage", true)
		p.SetIntValue(g.memory)
		if g.run != "" {
			p.Attributes().PutStr("ml.run.id", g.run)
			p.Attributes().PutStr("service.name", "trainer")
		}
		if g.user != "" {
			p.Attributes().PutStr("user.id", g.user)
		}
		if g.pid > 0 {
			p.Attributes().PutInt("ml.rank.global", g.rank)
			process := point("nvidia.gpu.process.memory.usage", true)
			process.SetIntValue(g.memory)
			p.Attributes().CopyTo(process.Attributes())
			process.Attributes().PutInt("process.pid", g.pid)
		}
	}
	if g.recovery > 0 {
		point("nvidia.gpu.recovery.action", true).SetIntValue(g.recovery)
	}
	general(point("hw.gpu.utilization", false), g.utilization)
	general(point("nvidia.gpu.busy.time", true), g.busy)
	if g.power > 0 {
		point("hw.power", false).SetDoubleValue(g.power)
	}
	if g.mayTake > 0 {
		p := point("nvidia.gpu.power.limit", true)
		p.SetDoubleValue(g.mayTake)
		p.Attributes().PutStr("nvidia.gpu.power.limit.type", "enforced")
	}
	if g.limit > 0 {
		point("hw.gpu.memory.usage", true).SetIntValue(g.used)
		point("hw.gpu.memory.limit", true).SetIntValue(g.limit)
	}
	for _, reason := range []string{"sw_power_cap", "hw_thermal_slowdown", "applications_clocks"} {
		p := point("nvidia.gpu.throttle.active", true)
		p.Attributes().PutStr("nvidia.gpu.throttle.reason", reason)
		p.SetIntValue(0)
		if reason == g.throttled {
			p.SetIntValue(1)
		}
	}
	if g.sm > 0 {
		point("nvidia.gpu.sm.utilization", false).SetDoubleValue(g.sm)
	}
	for _, state := range []string{"ok", "failed"} {
		p := point("hw.status", true)
		p.Attributes().PutStr("hw.state", state)
		p.Attributes().PutStr("hw.type", "gpu")
		p.SetIntValue(0)
		if (state == "failed") == g.failed {
			p.SetIntValue(1)
		}
	}
	return md
}

// steps sends n steps, each of that length.
func (r *run) steps(t *testing.T, n int, took time.Duration) {
	t.Helper()
	for range n {
		r.work(t, "optimizer", took)
	}
}

// request sends requests of a service, of which those with an error have a type.
func (r *run) request(t *testing.T, service string, errorTypes ...string) {
	t.Helper()
	for _, class := range errorTypes {
		r.spans++
		td := ptrace.NewTraces()
		span := addSpan(td, "", 2, r.spans)
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", service)
		if r.version != "" {
			td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.version", r.version)
		}
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		if class != "" {
			span.Attributes().PutStr("error.type", class)
			span.Status().SetCode(ptrace.StatusCodeError)
		}
		require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
	}
}

// A run that hangs with a GPU in its hands looks hung since its last sign of life.
func TestAHangWithAGPU(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.gpu = true
	r.steps(t, 3, time.Second)
	alive := r.clock
	r.after(t, 0)
	onsets, _ := problems(t, r.after(t, 5*time.Minute))
	assert.Empty(t, onsets)
	for range 10 {
		md := r.after(t, time.Minute)
		assert.Equal(t, "stalled", state(t, md))
		assertProblem(t, md, "trainer/looks_hung/run-a", alive)
		since, _ := gauges(t, md, "ml.run.state.timestamp")
		assert.Equal(t, map[string]float64{"trainer/run-a": float64(alive.Unix())}, since)
	}

	r.steps(t, 2, time.Second)
	md := r.after(t, 0)
	assert.Equal(t, "running", state(t, md))
	assertEnd(t, md, "trainer/looks_hung/run-a")
	since, _ := gauges(t, md, "ml.run.state.timestamp")
	assert.Equal(t, map[string]float64{"trainer/run-a": float64(r.clock.Unix())}, since)
	_, ended := problems(t, r.after(t, time.Second))
	assert.Empty(t, ended, "the end is sent once")
}

// Without a GPU the same run is silent, which is no problem.
func TestASilentRun(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.steps(t, 3, time.Second)
	r.after(t, 0)
	md := r.after(t, 6*time.Minute)
	assert.Equal(t, "silent", state(t, md))
	onsets, _ := problems(t, md)
	assert.Empty(t, onsets)
	r.gpu = true
	assert.Equal(t, "stalled", state(t, r.after(t, time.Minute)), "its GPU becomes known")
	r.gpu = false
	md = r.after(t, 6*time.Minute)
	assert.Equal(t, "silent", state(t, md))
	onsets, _ = problems(t, md)
	assert.Contains(t, onsets, "trainer/looks_hung/run-a", "nothing shows that it is over")
}

// The state of a run is that of its worst rank, and is emitted once.
func TestTheWorstRank(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.gpu = true
	rank := func(n int, phases ...string) {
		r.resource = map[string]any{"ml.rank.global": n, "host.name": "n" + strconv.Itoa(n)}
		for _, phase := range phases {
			r.work(t, phase, time.Second)
		}
	}
	rank(0, "data_load")
	first := r.clock
	md := r.after(t, 10*time.Second)
	assert.Equal(t, "unknown", state(t, md))
	since, _ := gauges(t, md, "ml.run.state.timestamp")
	assert.Equal(t, map[string]float64{"trainer/run-a": float64(first.Unix())}, since)
	rank(0, "optimizer")
	rank(1, "optimizer", "train")
	assert.Equal(t, "running", state(t, r.after(t, 0)))
	rank(0, "optimizer")
	hung := r.clock
	rank(2, "optimizer")
	r.after(t, time.Minute)
	md = r.after(t, 4*time.Minute-time.Second/2)
	assert.Equal(t, "stalled", state(t, md))
	assertProblem(t, md, "trainer/looks_hung/run-a", hung)
	rank(0, "train")
	rank(2, "train")
	md = r.after(t, 0)
	assert.Equal(t, "ended", state(t, md))
	assertEnd(t, md, "trainer/looks_hung/run-a")
}

// A shorter stall_timeout finds a hang earlier.
func TestStallTimeout(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.StallTimeout = 20 * time.Second
	r := newRun(t, cfg)
	r.gpu = true
	r.steps(t, 3, time.Second)
	r.after(t, 0)
	assert.Equal(t, "running", state(t, r.after(t, 20*time.Second)))
	assert.Equal(t, "stalled", state(t, r.after(t, time.Second)))
	r.steps(t, 3, 10*time.Second)
	r.after(t, 0)
	r.steps(t, 3, 10*time.Second)
	r.after(t, 0)
	assert.Equal(t, "running", state(t, r.after(t, 45*time.Second)), "five steps take longer")
}

// A run whose steps take longer than usual for stall_timeout is slow since the first
// of these.
func TestASlowRun(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.steps(t, 120, time.Second)
	r.after(t, 0)
	md := r.after(t, 0)
	times, _ := gauges(t, md, "ml.run.step.time")
	assert.Equal(t, map[string]float64{"trainer/recent/run-a": 1, "trainer/usual/run-a": 1}, times)
	began := r.clock
	r.steps(t, 17, 2*time.Second)
	r.after(t, 0)
	md = r.after(t, 0)
	times, _ = gauges(t, md, "ml.run.step.time")
	assert.Equal(t, map[string]float64{"trainer/recent/run-a": 2, "trainer/usual/run-a": 1}, times)
	onsets, _ := problems(t, md)
	assert.Empty(t, onsets, "not for long")
	r.steps(t, 133, 2*time.Second)
	assertProblem(t, r.after(t, 0), "trainer/slow/run-a", began)
	r.steps(t, 600, 2*time.Second)
	assertProblem(t, r.after(t, 0), "trainer/slow/run-a", began)
	r.steps(t, 12, time.Second)
	r.after(t, 0)
	assertEnd(t, r.after(t, time.Second), "trainer/slow/run-a")
}

// Of a run with several ranks the median one counts.
func TestTheMedianRank(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for rank, took := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
		r.resource = map[string]any{"ml.rank.global": rank}
		r.steps(t, 4, took)
	}
	r.after(t, 0)
	times, _ := gauges(t, r.after(t, 0), "ml.run.step.time")
	assert.Equal(t, map[string]float64{"trainer/recent/run-a": 3}, times)
}

// A service of which more requests fail than usual is failing since the first
// failure of these.
func TestAFailingService(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	ok := make([]string, 300)
	r.request(t, "agent", ok...)
	r.request(t, "other", ok...)
	md := r.after(t, 0)
	ratios, _ := gauges(t, md, "ml.request.error.ratio")
	assert.Equal(t, map[string]float64{"agent/recent": 0, "agent/usual": 0, "other/recent": 0, "other/usual": 0}, ratios)

	r.clock = r.clock.Add(time.Minute)
	began := r.clock
	r.request(t, "agent", "ToolTimeout")
	r.clock = r.clock.Add(time.Minute)
	for range 9 {
		r.request(t, "agent", "ToolTimeout", "", "", "", "")
	}
	md = r.after(t, time.Second)
	ratios, _ = gauges(t, md, "ml.request.error.ratio")
	assert.InDelta(t, 0.1, ratios["agent/recent"], 1e-9)
	assertProblem(t, md, "agent/failing", began)
	r.request(t, "agent", ok[:100]...)
	assertEnd(t, r.after(t, time.Second), "agent/failing")

	r.request(t, "agent", slices.Repeat([]string{"ToolTimeout"}, 8)...)
	assertProblem(t, r.after(t, time.Second), "agent/failing", r.clock.Add(-time.Second))
	last := r.clock.Add(-time.Second)
	for range 59 {
		md = r.after(t, time.Minute)
		assertProblem(t, md, "agent/failing", last)
	}
	ratios, ended := gauges(t, md, "ml.request.error.ratio")
	assert.NotContains(t, ratios, "other/recent", "there are no recent requests")
	assert.Contains(t, ratios, "agent/recent", "those that fail")
	assert.Empty(t, ended)
	assertEnd(t, r.after(t, time.Minute), "agent/failing")
	ratios, _ = gauges(t, r.after(t, time.Hour), "ml.request.error.ratio")
	assert.Empty(t, ratios, "they expire as other series do")
}

// A GPU that is held and does nothing is a problem after idle_timeout, by host.
func TestAGPUThatIsHeldIdle(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	idle := gpuMetrics{host: "n1", id: "GPU-a", memory: 1 << 30, busy: 7}
	r.read(t, idle)
	held := r.clock
	md := r.after(t, 0)
	times, _ := gauges(t, md, "ml.gpu.idle.time")
	assert.Equal(t, map[string]float64{"/GPU-a/n1": 0}, times)
	minute := func(g gpuMetrics) pmetric.Metrics {
		r.clock = r.clock.Add(time.Minute)
		r.read(t, g)
		r.read(t, gpuMetrics{host: "n2", id: "GPU-a", memory: 1, utilization: 0.5})
		return r.after(t, 0)
	}
	for range 29 {
		onsets, _ := problems(t, minute(idle))
		assert.Empty(t, onsets)
	}
	md = minute(idle)
	times, _ = gauges(t, md, "ml.gpu.idle.time")
	assert.Equal(t, map[string]float64{"/GPU-a/n1": 1800, "/GPU-a/n2": 0}, times)
	assertProblem(t, md, "/held_idle/GPU-a/n1", held)
	idle.busy++
	assertEnd(t, minute(idle), "/held_idle/GPU-a/n1")
	idle.memory = 0
	minute(idle) // one reading without its workload may be one that is incomplete
	_, ended := gauges(t, minute(idle), "ml.gpu.idle.time")
	assert.Equal(t, []string{"/GPU-a/n1"}, ended, "nobody holds it")

	cfg := createDefaultConfig().(*Config)
	cfg.IdleTimeout = 0
	r = newRun(t, cfg)
	idle.memory = 1
	minute(idle)
	for range 120 {
		onsets, _ := problems(t, minute(idle))
		assert.Empty(t, onsets)
	}
}

// A GPU that fails is a problem of the run that held it, also when the run is gone.
func TestAGPUThatFails(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.steps(t, 1, time.Second)
	gpu := gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1 << 30, utilization: 1}
	r.read(t, gpu)
	r.after(t, 0)
	gpu = gpuMetrics{host: "n1", id: "GPU-a", failed: true}
	r.clock = r.clock.Add(time.Minute)
	r.read(t, gpu)
	failed := r.clock
	for range 90 {
		assertProblem(t, r.after(t, 0), "trainer/gpu_failed/GPU-a/n1/run-a", failed)
		r.clock = r.clock.Add(time.Minute)
		r.read(t, gpu)
	}
	gpu.failed = false
	r.read(t, gpu)
	for range 8 {
		r.clock = r.clock.Add(time.Minute)
		r.read(t, gpu)
		assertProblem(t, r.after(t, 0), "trainer/gpu_failed/GPU-a/n1/run-a", failed)
	}
	assertEnd(t, r.after(t, time.Minute), "trainer/gpu_failed/GPU-a/n1/run-a")

	r.read(t, gpuMetrics{host: "n2", id: "GPU-b", failed: true})
	failed = r.clock
	for range 23 {
		assertProblem(t, r.after(t, time.Hour), "/gpu_failed/GPU-b/n2", failed)
	}
	assertEnd(t, r.after(t, time.Hour), "/gpu_failed/GPU-b/n2")
}

// A run that is started again and again is in a loop until an hour is over.
func TestARestartLoop(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	attempt := func(n int) pmetric.Metrics {
		// Each attempt is on another host.
		r.resource = map[string]any{"ml.run.attempt": n, "host.name": "n" + strconv.Itoa(n)}
		r.steps(t, 1, time.Second)
		return r.after(t, 0)
	}
	attempt(5)
	r.clock = r.clock.Add(10 * time.Minute)
	attempt(6)
	first := r.clock
	r.clock = r.clock.Add(10 * time.Minute)
	onsets, _ := problems(t, attempt(7))
	assert.Empty(t, onsets, "two new attempts")
	r.clock = r.clock.Add(10 * time.Minute)
	assertProblem(t, attempt(8), "trainer/restart_loop/run-a", first)
	r.clock = r.clock.Add(10 * time.Minute)
	assertProblem(t, attempt(9), "trainer/restart_loop/run-a", first)
	var ended []string
	for range 40 {
		r.clock = r.clock.Add(time.Minute)
		r.steps(t, 1, time.Second)
		md := r.after(t, 0)
		if _, ended = problems(t, md); ended != nil {
			break
		}
	}
	assert.Equal(t, []string{"trainer/restart_loop/run-a"}, ended)
}

// The GPUs of a run are those that the newest reading has, and what it is bound by
// rests on them and its time.
func TestGPUsAndBound(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	bound := func(md pmetric.Metrics) string {
		values, _ := gauges(t, md, "ml.run.bound")
		assert.Len(t, values, 5)
		var is []string
		for key, value := range values {
			if value == 1 {
				is = append(is, key)
			}
		}
		require.Len(t, is, 1)
		return is[0]
	}
	emit := func() pmetric.Metrics {
		r.after(t, 0)
		return r.after(t, 0)
	}
	r.steps(t, 60, time.Second)
	assert.Equal(t, "trainer/unknown/run-a", bound(emit()), "no GPU is known")
	r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1, utilization: 0.9, sm: 0.2})
	r.read(t, gpuMetrics{host: "n1", id: "GPU-b", run: "run-a", memory: 1, utilization: 0.4})
	md := emit()
	values, _ := gauges(t, md, "ml.run.gpus")
	assert.Equal(t, map[string]float64{"trainer/run-a": 2}, values)
	values, _ = gauges(t, md, "ml.run.gpu.utilization")
	assert.InDelta(t, 0.3, values["trainer/run-a"], 1e-9)
	assert.Equal(t, "trainer/launch/run-a", bound(md))
	values, _ = gauges(t, md, "ml.run.goodput")
	assert.Equal(t, map[string]float64{"trainer/run-a": 1}, values)

	for range 40 {
		r.work(t, "data_load", time.Second)
	}
	md = emit()
	assert.Equal(t, "trainer/input/run-a", bound(md))
	values, _ = gauges(t, md, "ml.run.time.ratio")
	assert.InDeltaMapValues(t, map[string]float64{"trainer/productive/run-a": 0.6, "trainer/data_load/run-a": 0.4}, values, 1e-9)

	// A run without training spans has GPUs and no state. Its service is the one
	// that its other series have, as far as there are any.
	r.resource, r.run = map[string]any{"service.namespace": "ns"}, "samples"
	r.work(t, "sample", time.Second)
	r.read(t, gpuMetrics{host: "n1", id: "GPU-d", run: "samples", memory: 1})
	values, _ = gauges(t, r.after(t, time.Second), "ml.run.gpus")
	assert.Contains(t, values, "ns/trainer/samples")
	r.read(t, gpuMetrics{host: "n1", id: "GPU-c", run: "serves", memory: 1, utilization: 0.4})
	md = r.after(t, time.Second)
	values, _ = gauges(t, md, "ml.run.gpus")
	assert.InDelta(t, 1, values["trainer/serves"], 0)
	states, _ := gauges(t, md, "ml.run.state")
	assert.NotContains(t, states, "trainer/running/serves")
	_, ended := gauges(t, r.after(t, 6*time.Minute), "ml.run.gpus")
	assert.ElementsMatch(t, []string{"trainer/run-a", "trainer/serves", "ns/trainer/samples"}, ended)
}

// However many GPUs, runs and services there are, few are remembered, and none for
// long.
func TestProblemsAreBounded(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxSeries = 500
	r := newRun(t, cfg)
	for n := range 10_000 {
		name := strconv.Itoa(n)
		r.spans = 0
		r.read(t, gpuMetrics{host: name, id: name, run: name, memory: 1, failed: true})
		td := ptrace.NewTraces()
		span := addSpan(td, "", byte(n>>8), uint16(n)) // #nosec G115 -- distinct
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", name)
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
	}
	md := r.after(t, 0)
	assert.LessOrEqual(t, md.DataPointCount(), 500+10)
	remembered := 0
	r.connector.services.Each(func(*serving.Service) { remembered++ })
	assert.Equal(t, 1024, remembered)
	r.after(t, 2*time.Hour)
	r.connector.services.Each(func(*serving.Service) { t.Error("it has expired") })
	facts, _ := r.connector.Shared.seen.Settle(nil, r.clock.Add(24*time.Hour))
	for key, g := range facts.GPUs {
		assert.Nil(t, g.Failure, key)
	}
	assert.Empty(t, r.connector.clocks.Keep())
}

// A run that hangs or ends is not slow, whatever its last steps took.
func TestASlowRunThatHangs(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.gpu = true
	r.steps(t, 120, time.Second)
	r.steps(t, 20, 2*time.Second)
	hung := r.clock
	r.after(t, 0)
	r.after(t, time.Minute)
	md := r.after(t, 6*time.Minute)
	assertProblem(t, md, "trainer/looks_hung/run-a", hung)
}

// Work after the end of training is a new attempt, and a run that has ended is in
// no loop.
func TestALoopThatEnds(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for range 4 {
		r.work(t, "optimizer", time.Second)
		r.work(t, "train", time.Second)
		onsets, _ := problems(t, r.after(t, time.Second))
		assert.Empty(t, onsets)
	}
	r.work(t, "optimizer", time.Second)
	onsets, _ := problems(t, r.after(t, time.Second))
	assert.Contains(t, onsets, "trainer/restart_loop/run-a")
	r.work(t, "train", time.Second)
	assertEnd(t, r.after(t, time.Second), "trainer/restart_loop/run-a")
}

// The onset of a failing service stays until its failures are usual.
func TestAServiceThatGoesOnFailing(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	began := r.clock
	for range 38 {
		r.request(t, "agent", "timeout", "timeout", "timeout", "", "")
		assertProblem(t, r.after(t, 20*time.Second), "agent/failing", began)
	}
}

// When the collector's clock is set back, states and problems are those of now.
func TestTheClockIsSetBack(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.steps(t, 1, time.Second)
	r.request(t, "agent", "timeout", "timeout", "timeout")
	r.after(t, time.Second)
	r.clock = r.clock.Add(-24 * time.Hour)
	r.work(t, "train", 25*time.Hour)
	r.clock = r.clock.Add(-25 * time.Hour)
	r.request(t, "agent", make([]string, 10)...)
	md := r.after(t, 0)
	assert.Equal(t, "ended", state(t, md))
	assertEnd(t, md, "agent/failing")
}

// What is no reading of a GPU says nothing about one.
func TestWhatIsNoReading(t *testing.T) {
	change := func(name string, by func(pmetric.NumberDataPoint)) func(pmetric.Metrics) {
		return func(md pmetric.Metrics) {
			for m := range metricsOf(md) {
				if m.Name() == name {
					for _, p := range mlattr.NumberPoints(m).All() {
						by(p)
					}
				}
			}
		}
	}
	const memory, use, status = "nvidia.gpu.workload.memory.usage", "hw.gpu.utilization", "hw.status"
	for name, tt := range map[string]struct {
		by      func(pmetric.Metrics)
		series  string
		without string
	}{
		"the end of a series": {change(memory, func(p pmetric.NumberDataPoint) {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}), "ml.gpu.idle.time", "/GPU-a/n1"},
		"another device": {change(status, func(p pmetric.NumberDataPoint) {
			p.Attributes().PutStr("hw.type", "fan")
		}), "ml.problem.onset.timestamp", "trainer/gpu_failed/GPU-a/n1/run-a"},
		"no device": {change(use, func(p pmetric.NumberDataPoint) {
			p.Attributes().Remove("hw.id")
		}), "ml.gpu.idle.time", "/n1"},
		"a video decoder, which works": {change(use, func(p pmetric.NumberDataPoint) {
			p.Attributes().PutStr("hw.gpu.task", "decoder")
			p.SetDoubleValue(1)
		}), "", ""},
		"not a number": {change(use, func(p pmetric.NumberDataPoint) { p.SetDoubleValue(math.NaN()) }), "", ""},
		"less than 0":  {change(use, func(p pmetric.NumberDataPoint) { p.SetDoubleValue(-1) }), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			var md pmetric.Metrics
			for range 3 {
				reading := gpuReading(gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1, failed: true}, r.clock)
				if tt.series == "" {
					reading = gpuReading(gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1}, r.clock)
				}
				tt.by(reading)
				r.metrics(t, reading)
				md = r.after(t, 0)
				r.clock = r.clock.Add(time.Minute)
			}
			if tt.series == "" {
				idle, _ := gauges(t, md, "ml.gpu.idle.time")
				assert.Equal(t, map[string]float64{"/GPU-a/n1": 120}, idle)
				return
			}
			found, _ := gauges(t, md, tt.series)
			assert.NotContains(t, found, tt.without)
		})
	}
}

// Workloads of runs that ml_guard has not admitted share a GPU as others do.
func TestAGPUThatIsShared(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	md := gpuReading(gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1}, r.clock)
	points := find(t, md, "nvidia.gpu.workload.memory.usage").Sum().DataPoints()
	for _, user := range []string{"1", "2"} {
		p := points.AppendEmpty()
		points.At(0).CopyTo(p)
		p.Attributes().PutStr("ml.run.id", "_OTHER")
		p.Attributes().PutStr("user.id", user)
	}
	r.metrics(t, md)
	found, _ := gauges(t, r.after(t, 0), "ml.run.gpus")
	assert.InDeltaMapValues(t, map[string]float64{"trainer/run-a": 1. / 3}, found, 1e-9)
}

// The host of a GPU is that of its resource if its points have none.
func TestTheHostOfAResource(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	md := gpuReading(gpuMetrics{id: "GPU-a", memory: 1}, r.clock)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", "n7")
	r.metrics(t, md)
	idle, _ := gauges(t, r.after(t, 0), "ml.gpu.idle.time")
	assert.Equal(t, map[string]float64{"/GPU-a/n7": 0}, idle)
}

// What people say of problems is evidence of the next of the kind, and a series. What cannot be
// read leaves the earlier ones.
func TestVerdictsOfPeople(t *testing.T) {
	w := newWorld(t, 1)
	w.connector.cfg.StateDirectory = t.TempDir()
	file := filepath.Join(w.connector.cfg.StateDirectory, "verdicts")
	w.gpu = func(_ int, g *gpuMetrics) { g.utilization, g.power = 0, 70 }
	require.NoError(t, os.WriteFile(file, []byte("held_idle 1 right\nheld_idle 2 wrong\nslow 3 right\n"), 0o600))
	w.wait(t, 20*time.Minute)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	w.wait(t, 15*time.Minute)
	assert.Contains(t, texts(w.only(t, "held_idle"), "ml.problem.evidence"), "by the verdicts here, 1 of 2 such problems were right")
	said := map[string]int64{}
	for _, p := range find(t, w.after(t, 0), "ml.problem.verdicts").Sum().DataPoints().All() {
		kind, _ := p.Attributes().Get("ml.problem")
		result, _ := p.Attributes().Get("result")
		said[kind.Str()+" "+result.Str()] = p.IntValue()
	}
	assert.Equal(t, map[string]int64{"held_idle right": 1, "held_idle wrong": 1, "slow right": 1}, said)
}
