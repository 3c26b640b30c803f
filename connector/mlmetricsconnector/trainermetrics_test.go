package mlmetricsconnector

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// trains is what a trainer's exporter sends of a run: the mean time of the steps of
// each log so far, in milliseconds, and the newest loss.
func trains(at time.Time, logs uint64, each, loss float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	attrs.PutStr("service.name", "trainer")
	attrs.PutStr("ml.run.id", "run-a")
	attrs.PutInt("dl.rank", 7)
	attrs.PutInt("dl.world_size", 8)
	attrs.PutDouble("ml.job.tokens_per_step", 1000)
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	times := metrics.AppendEmpty()
	times.SetName("megatron.training.step_duration_ms")
	times.SetUnit("ms")
	histogram := times.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := histogram.DataPoints().AppendEmpty()
	point.SetCount(logs)
	point.SetSum(each * float64(logs))
	point.SetTimestamp(pcommon.NewTimestampFromTime(at))
	losses := metrics.AppendEmpty()
	losses.SetName("megatron.training.loss")
	newest := losses.SetEmptyGauge().DataPoints().AppendEmpty()
	newest.SetDoubleValue(loss)
	newest.SetTimestamp(pcommon.NewTimestampFromTime(at))
	return md
}

// A run whose steps have no spans takes steps while its metrics change, and stalls
// when they stay the same, although they arrive.
func TestMetricsShowTheStepsOfARun(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := uint64(1)
	sends := func() {
		r.holdsGPU(t, "run-a", 1<<30)
		r.metrics(t, trains(r.clock, logs, 2000, 4-float64(logs)/8))
	}
	sends()
	md := r.every(t, time.Minute, sends)
	assert.Equal(t, "unknown", state(t, md), "the log may be from before")
	md = r.every(t, 10*time.Minute, func() { logs++; sends() })
	assert.Equal(t, "running", state(t, md))
	assert.InDelta(t, 2, find(t, md, "ml.run.step.time").Gauge().DataPoints().At(0).DoubleValue(), 0)
	assert.InDelta(t, 4-11.0/8, find(t, md, "ml.loss").Gauge().DataPoints().At(0).DoubleValue(), 0)
	rate := find(t, md, "ml.run.token.throughput").Gauge().DataPoints().At(0)
	assert.InDelta(t, 500, rate.DoubleValue(), 0)
	basis, _ := rate.Attributes().Get("ml.throughput.basis")
	assert.Equal(t, "steps", basis.Str())
	assert.NotContains(t, counters(md), "ml.steps", "the trainer does not count them")
	assert.InDelta(t, 480, used(t, md)["productive"], 0, "of 9 minutes; one emission late")

	stopped := r.clock
	md = r.every(t, 5*time.Minute, sends)
	assert.Equal(t, "running", state(t, md), "five logs are not overdue")
	md = r.every(t, 2*time.Minute, sends)
	assert.Equal(t, "stalled", state(t, md))
	assertProblem(t, md, "trainer/looks_hung/run-a", stopped)
	md = r.every(t, time.Minute, func() { logs++; sends() })
	assert.Equal(t, "running", state(t, md))
}

// The norm of the gradient has a gauge, and one that is not finite is counted by its name.
func TestMetricsShowTheNormOfTheGradient(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := uint64(1)
	sends := func(norm float64) {
		md := trains(r.clock, logs, 2000, 4-float64(logs)/8)
		of := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
		of.SetName("megatron.training.grad_norm")
		point := of.SetEmptyGauge().DataPoints().AppendEmpty()
		point.SetDoubleValue(norm)
		point.SetTimestamp(pcommon.NewTimestampFromTime(r.clock))
		r.metrics(t, md)
		logs++
	}
	r.every(t, 2*time.Minute, func() { sends(0.5 + float64(logs)/64) })
	md := r.every(t, time.Minute, func() { sends(math.Inf(1)) })
	assert.InDelta(t, 0.5+2.0/64, find(t, md, "ml.gradient.norm").Gauge().DataPoints().At(0).DoubleValue(), 0)
	bad := find(t, md, "ml.nonfinite").Sum().DataPoints().At(0)
	assert.EqualValues(t, 1, bad.IntValue())
	signal, _ := bad.Attributes().Get("ml.signal")
	assert.Equal(t, "gradient_norm", signal.Str())
}

// A log interval longer than stall_timeout is no stall.
func TestARunThatLogsSeldom(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := uint64(1)
	var md pmetric.Metrics
	minute := 0
	sends := func() {
		if minute++; minute%10 == 0 {
			logs++
		}
		r.holdsGPU(t, "run-a", 1<<30)
		r.metrics(t, trains(r.clock, logs, 2000, 4))
	}
	r.every(t, 40*time.Minute, sends)
	for range 60 {
		md = r.every(t, time.Minute, sends)
		assert.Equal(t, "running", state(t, md))
	}
}

// If spans show the steps, the metrics add none.
func TestSpansOfStepsGoBeforeMetrics(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.resource = map[string]any{"dl.rank": 7}
	logs := uint64(1)
	var md pmetric.Metrics
	for range 20 {
		r.work(t, "forward", 2*time.Second)
		r.work(t, "optimizer", time.Second)
		logs++
		r.metrics(t, trains(r.clock, logs, 2000, 4-float64(logs)/64))
		md = r.after(t, 0)
	}
	assert.EqualValues(t, 20, counters(md)["ml.steps"])
	for _, p := range find(t, md, "ml.run.step.time").Gauge().DataPoints().All() {
		assert.InDelta(t, 3, p.DoubleValue(), 0)
	}
	assert.InDelta(t, 4-21.0/64, find(t, md, "ml.loss").Gauge().DataPoints().At(0).DoubleValue(), 0, "no span has one")
}

// A restart without the spans of steps is judged by the metrics.
func TestMetricsShowTheStepsAfterSpansDid(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.gpu, r.resource = true, map[string]any{"dl.rank": 7}
	for range 10 {
		r.work(t, "forward", 2*time.Second)
		r.work(t, "optimizer", time.Second)
		r.after(t, 0)
	}
	logs := uint64(1)
	minute := 0
	var md pmetric.Metrics
	for range 60 {
		md = r.every(t, time.Minute, func() {
			if minute++; minute%10 == 0 {
				logs++
			}
			r.holdsGPU(t, "run-a", 1<<30)
			r.metrics(t, trains(r.clock, logs, 2000, 4))
		})
		if minute > 30 {
			assert.Equal(t, "running", state(t, md), "minute %d", minute)
		}
	}
	assert.EqualValues(t, 10, counters(md)["ml.steps"])
}

// A run that takes no steps expires, although its exporter sends the same metrics
// again.
func TestARunWithoutChangesExpires(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := uint64(1)
	sends := func() { r.metrics(t, trains(r.clock, logs, 2000, 4)) }
	r.every(t, 5*time.Minute, func() { logs++; sends() })
	md := r.every(t, 50*time.Minute, sends)
	assert.Equal(t, "silent", state(t, md))
	r.every(t, 20*time.Minute, sends)
	for m := range metricsOf(r.after(t, time.Minute)) {
		assert.NotEqual(t, "ml.run.state", m.Name())
	}
	assert.Equal(t, "running", state(t, r.every(t, time.Minute, func() { logs++; sends() })))
}

// A time far ahead of the collector's does not exclude what comes later.
func TestTrainersWithAWrongClock(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	ahead := time.Duration(0)
	logs := uint64(0)
	sends := func() {
		logs++
		r.metrics(t, trains(r.clock.Add(ahead), logs, 2000, 4-float64(logs)/64))
	}
	r.every(t, 5*time.Minute, sends)
	ahead = 30 * 365 * 24 * time.Hour
	md := r.every(t, 5*time.Minute, sends)
	assert.LessOrEqual(t, used(t, md)["productive"], 240.0)
	ahead = 0
	md = r.every(t, 20*time.Minute, sends)
	assert.Greater(t, used(t, md)["productive"], 1000.0)
	for _, p := range find(t, md, "ml.run.last_step.timestamp").Gauge().DataPoints().All() {
		assert.LessOrEqual(t, p.DoubleValue(), float64(r.clock.Unix()))
	}
}

// Of spans that contain all of a step, one in another, and an optimizer in these, one
// step is counted.
func TestSpansOfAWholeStep(t *testing.T) {
	for name, chain := range map[string][]string{
		"the step alone":              {"nv.dl.training.iter_block"},
		"with its iteration":          {"nv.dl.training.iter_block", "nv.dl.training.iteration"},
		"with its optimizer":          {"nv.dl.training.iter_block", "nv.dl.training.iteration", "nv.dl.training.iteration.optimizer_step"},
		"an iteration of older names": {"megatron.train", "megatron.train.iteration", "megatron.train.iteration.optimizer"},
	} {
		for _, single := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r := newRun(t, createDefaultConfig().(*Config))
				for step := range byte(5) {
					td := ptrace.NewTraces()
					for level, name := range slices.Backward(chain) {
						span := addSpan(td, "run-a", step+1, 0)
						span.SetName(name)
						span.SetSpanID(pcommon.SpanID{byte(level) + 1}) // #nosec G115 -- one of three
						if level > 0 {
							span.SetParentSpanID(pcommon.SpanID{byte(level)}) // #nosec G115 -- one of three
						}
						begun := r.clock.Add(time.Duration(step) * time.Second)
						span.SetStartTimestamp(pcommon.NewTimestampFromTime(begun))
						span.SetEndTimestamp(pcommon.NewTimestampFromTime(begun.Add(time.Second - time.Duration(level)*time.Millisecond)))
					}
					requests := []ptrace.Traces{td}
					if single {
						requests = singly(td)
					}
					for _, request := range requests {
						require.NoError(t, r.connector.ConsumeTraces(t.Context(), request))
					}
				}
				assert.EqualValues(t, 5, counters(r.after(t, time.Minute))["ml.steps"])
			})
		}
	}
}

// If only some ranks of a client send, none is missing.
func TestRanksThatNeverSendMayBeSilent(t *testing.T) {
	for name, tt := range map[string]struct {
		keys [2]string
		want bool
	}{
		"all send":        {[2]string{"ml.rank.global", "ml.world_size"}, true},
		"some ranks send": {[2]string{"dl.rank", "dl.world_size"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			var md pmetric.Metrics
			for range 32 {
				for rank := range 5 {
					r.resource = map[string]any{tt.keys[0]: rank, tt.keys[1]: 8}
					r.work(t, "forward", 6*time.Second)
					r.work(t, "optimizer", 6*time.Second)
				}
				md = r.after(t, 0)
			}
			assert.Equal(t, tt.want, hasProblem(md, "rank_missing"))
		})
	}
}

func hasProblem(md pmetric.Metrics, kind string) bool {
	for m := range metricsOf(md) {
		if m.Name() != "ml.problem.onset.timestamp" {
			continue
		}
		for _, p := range m.Gauge().DataPoints().All() {
			if is, _ := p.Attributes().Get("ml.problem"); is.Str() == kind {
				return true
			}
		}
	}
	return false
}
