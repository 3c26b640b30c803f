package mlmetricsconnector

import (
	"cmp"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// run is one process of a training run, with a clock that the test moves.
type run struct {
	connector *metricsConnector
	sink      *consumertest.MetricsSink
	clock     time.Time
	// ahead is by how much the client's clock is ahead.
	ahead time.Duration
	spans uint16
	// run is the id of the run, run-a where it is empty, and resource what else
	// its resource has.
	run      string
	resource map[string]any
	// gpu reports whether run-a holds a GPU, which is read before each emission.
	gpu bool
	// attributes are those of each span besides its phase.
	attributes map[string]any
	// version is the service.version of requests, if it is not "".
	version string
}

func newRun(t *testing.T, cfg *Config) *run {
	t.Helper()
	cfg.InitialZero = 0 // what is counted shows at once
	sink := new(consumertest.MetricsSink)
	c, err := newMetricsConnector(connectortest.NewNopSettings(metadata.Type), cfg, new(instancesByID), sink)
	require.NoError(t, err)
	r := &run{connector: c, sink: sink, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	c.now = func() time.Time {
		if refusesAll {
			c.state.Refused(r.clock)
		}
		return r.clock
	}
	t.Cleanup(func() { require.NoError(t, c.Shutdown(t.Context())) })
	return r
}

// work moves the clock to the end of a span of a phase and sends it.
func (r *run) work(t *testing.T, phase string, took time.Duration) {
	t.Helper()
	r.spans++
	td := ptrace.NewTraces()
	span := addSpan(td, cmp.Or(r.run, "run-a"), 1, r.spans)
	for key, value := range r.resource {
		require.NoError(t, td.ResourceSpans().At(0).Resource().Attributes().PutEmpty(key).FromRaw(value))
	}
	require.NoError(t, span.Attributes().FromRaw(r.attributes))
	span.Attributes().PutStr("ml.phase", phase)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.clock.Add(r.ahead)))
	r.clock = r.clock.Add(took)
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.clock.Add(r.ahead)))
	require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
}

// after moves the clock and emits.
func (r *run) after(t *testing.T, d time.Duration) pmetric.Metrics {
	t.Helper()
	r.clock = r.clock.Add(d)
	if r.gpu {
		r.holdsGPU(t, "run-a", 1<<30)
	}
	r.sink.Reset()
	require.NoError(t, r.connector.emit(t.Context(), false))
	all := pmetric.NewMetrics()
	for _, md := range r.sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			rm.CopyTo(all.ResourceMetrics().AppendEmpty())
		}
	}
	return all
}

// state is the one state that is 1.
func state(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	var found []string
	points := find(t, md, "ml.run.state").Sum().DataPoints()
	assert.Equal(t, 6, points.Len())
	for _, p := range points.All() {
		if p.IntValue() == 1 {
			name, _ := p.Attributes().Get("ml.run.state")
			found = append(found, name.Str())
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

// used is the time of the run by state, in seconds.
func used(t *testing.T, md pmetric.Metrics) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for _, p := range find(t, md, "ml.run.time").Sum().DataPoints().All() {
		name, _ := p.Attributes().Get("ml.run.state")
		found[name.Str()] = p.DoubleValue()
	}
	return found
}

// A run that hangs sends nothing, and is seen to by the clock alone. When it
// goes on, the time of its silence is counted once.
func TestARunThatHangsShows(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	r := newRun(t, cfg)
	r.gpu = true
	r.work(t, "data_load", time.Second)
	assert.Equal(t, "unknown", state(t, r.after(t, 0)), "no step yet")
	for range 4 {
		r.work(t, "forward", 2*time.Second)
		r.work(t, "optimizer", time.Second)
	}
	assert.Equal(t, "running", state(t, r.after(t, 0)))
	assert.Equal(t, "running", state(t, r.after(t, 5*time.Minute)))
	assert.Equal(t, map[string]float64{"data_load": 1, "productive": 12}, used(t, r.after(t, 0)))

	md := r.after(t, 15*time.Second)
	assert.Equal(t, "stalled", state(t, md))
	assert.InDelta(t, 315, used(t, md)["unknown"], 1e-9)
	assert.InDelta(t, 375, used(t, r.after(t, time.Minute))["unknown"], 1e-9)

	for _, took := range []time.Duration{4 * time.Second, time.Second / 2} {
		r.work(t, "forward", took)
		r.work(t, "optimizer", 3*time.Second/4)
	}
	r.after(t, 0)
	require.NoError(t, r.connector.emit(t.Context(), true))
	md = lastOf(t, r.sink)
	assert.Equal(t, "running", state(t, md))
	assert.Equal(t, map[string]float64{"data_load": 1, "productive": 18, "unknown": 375}, used(t, md))
	assert.Equal(t, uint64(5), timedSteps(t, md), "the step around the silence has no length")
}

// A validation without a step is no silence.
func TestALongValidationIsNoStall(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "optimizer", time.Second)
	for range 20 {
		r.work(t, "validation", time.Minute)
		assert.Equal(t, "running", state(t, r.after(t, 0)))
	}
}

// A run whose steps take long is given longer.
func TestSlowStepsAreNoStall(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for range 3 {
		r.work(t, "optimizer", 4*time.Minute)
	}
	r.after(t, 0)
	assert.Equal(t, "running", state(t, r.after(t, 19*time.Minute)))
	assert.Equal(t, "silent", state(t, r.after(t, 2*time.Minute)))
}

// A run that its client says is over stops its clock, until it is tried again.
func TestARunThatEndedIsNotStalled(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "optimizer", time.Second)
	r.work(t, "train", time.Second)
	r.after(t, 0)
	md := r.after(t, 30*time.Minute)
	assert.Equal(t, "ended", state(t, md))
	assert.Equal(t, map[string]float64{"productive": 1}, used(t, md))

	r.work(t, "optimizer", time.Second)
	assert.Equal(t, "running", state(t, r.after(t, 0)))
}

// The state of a run does not keep its series alive.
func TestARunThatIsForgottenLeavesNothing(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "optimizer", time.Second)
	emitted := r.after(t, 0)
	assert.Positive(t, emitted.DataPointCount())
	r.after(t, 59*time.Minute)
	count := len(r.sink.AllMetrics())
	r.clock = r.clock.Add(2 * time.Minute)
	require.NoError(t, r.connector.emit(t.Context(), false))
	require.NoError(t, r.connector.emit(t.Context(), false))
	assert.Len(t, r.sink.AllMetrics(), count+1, "nothing is left to emit but the end of the series")
	assert.Empty(t, r.connector.clocks.Keep())
}

// timedSteps is the number of steps with a length.
func timedSteps(t *testing.T, md pmetric.Metrics) uint64 {
	t.Helper()
	for _, p := range find(t, md, "ml.step.duration").Histogram().DataPoints().All() {
		if phase, _ := p.Attributes().Get("ml.phase"); phase.Str() == "other" {
			return p.Count()
		}
	}
	return 0
}

// However many steps end between two emissions, all of them count.
func TestStepsThatPileUp(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for range 3 * 4096 {
		r.work(t, "optimizer", time.Millisecond)
	}
	r.after(t, 0)
	assert.Equal(t, uint64(3*4096), timedSteps(t, r.after(t, 0)))
}

// A client's clock that is wrong changes neither its steps nor its time, as long
// as it is not ahead by more than an hour.
func TestSkewOfAClientsClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, -24 * time.Hour, 59 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			r.ahead = ahead
			for range 5 {
				r.work(t, "forward", 2*time.Second)
				r.work(t, "optimizer", time.Second)
			}
			r.after(t, 0)
			require.NoError(t, r.connector.emit(t.Context(), true))
			md := lastOf(t, r.sink)
			assert.Equal(t, "running", state(t, md))
			assert.Equal(t, map[string]float64{"productive": 15}, used(t, md))
			assert.Equal(t, int64(5), counters(md)["ml.steps"])
			assert.Equal(t, uint64(5), timedSteps(t, md))
			last := find(t, md, "ml.run.last_step.timestamp").Gauge().DataPoints().At(0).DoubleValue()
			assert.LessOrEqual(t, last, float64(r.clock.UnixNano())/1e9, "no step is in the future")
			assert.Equal(t, "silent", state(t, r.after(t, 6*time.Minute)), "by the collector's clock")
		})
	}
}

// A clock that is set back, or a single span from the future, stops nothing for
// long.
func TestAClockThatIsSetBack(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.ahead = 50 * time.Minute
	r.work(t, "forward", time.Second)
	r.after(t, 0)
	r.after(t, 0)
	r.ahead = 0
	for range 10 {
		r.work(t, "forward", time.Minute)
		r.after(t, 0)
	}
	md := r.after(t, 0)
	assert.Equal(t, map[string]float64{"productive": 1 + 10*60}, used(t, md), "what came before that was known, too")
	assert.Equal(t, int64(1), counters(md)["ml.run.attempts"])
}

// A clock that is set back by less than that costs neither a step nor its time
// where the client numbers its steps.
func TestAClockThatIsSetBackAmongNumberedSteps(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for n := range 60 {
		if n == 30 {
			r.ahead = -20 * time.Second
		}
		r.attributes = map[string]any{"ml.step": n + 1}
		r.work(t, "forward", 2*time.Second)
		r.work(t, "optimizer", time.Second)
		if n%5 == 4 {
			r.after(t, 0)
		}
	}
	r.after(t, 0)
	require.NoError(t, r.connector.emit(t.Context(), true))
	md := lastOf(t, r.sink)
	assert.Equal(t, int64(60), counters(md)["ml.steps"])
	assert.InDelta(t, 180, used(t, md)["productive"], 3)
	assert.GreaterOrEqual(t, timedSteps(t, md), uint64(58))
}

// The number of a step may stand on its forward pass or on the span around it only, in one
// trace of the program or in one of each step, sent together or one after the other.
func TestAClockThatIsSetBackAmongNumberedParts(t *testing.T) {
	const step = 200 * time.Millisecond
	for _, numbered := range []string{"forward", "batch", "optimizer"} {
		for _, oneTrace := range []bool{true, false} {
			for _, together := range []bool{true, false} {
				t.Run(fmt.Sprint(numbered, oneTrace, together), func(t *testing.T) {
					r := newRun(t, createDefaultConfig().(*Config))
					td := ptrace.NewTraces()
					send := func() {
						require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
						td = ptrace.NewTraces()
					}
					for n := range 240 {
						if n == 120 {
							r.ahead = -20 * time.Second
						}
						trace := byte(1)
						if !oneTrace {
							trace += byte(n)
						}
						r.spans += 3
						begin, parent := r.clock.Add(r.ahead), r.spans
						part := func(id uint16, phase string, from, to time.Duration) {
							span := addSpan(td, "run-a", trace, id)
							span.Attributes().PutStr("ml.phase", phase)
							if phase == numbered {
								span.Attributes().PutInt("ml.step", int64(n+1))
							}
							if id != parent {
								span.SetParentSpanID(pcommon.SpanID{byte(parent >> 8), byte(parent), 1})
							}
							span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin.Add(from)))
							span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(to)))
							if !together {
								send()
							}
						}
						part(parent+1, "forward", 0, step/2)
						part(parent+2, "optimizer", step/2, step*9/10)
						part(parent, "batch", 0, step)
						r.clock = r.clock.Add(step)
						if n%10 == 9 {
							send()
						}
					}
					assert.Equal(t, int64(240), counters(r.after(t, 0))["ml.steps"])
				})
			}
		}
	}
}

// What a program sends late is divided as if it had come in time, until the
// emission after the next one.
func TestLateSpans(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "forward", time.Second)
	r.after(t, 0)
	late := r.clock
	r.clock = r.clock.Add(2 * time.Second)
	r.work(t, "optimizer", time.Second)
	r.after(t, 0)
	now := r.clock
	r.clock = late
	r.work(t, "backward", 2*time.Second)
	r.clock = now
	r.after(t, 0)
	assert.Equal(t, map[string]float64{"productive": 4}, used(t, r.after(t, 0)))
	r.clock = late
	r.work(t, "validation", 2*time.Second)
	r.clock = now
	r.after(t, 0)
	assert.Equal(t, map[string]float64{"productive": 4}, used(t, r.after(t, 0)), "too late")
}

// Two runs of one service have a state each.
func TestTwoRunsOfAService(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "optimizer", time.Second)
	r.run = "run-b"
	for range 7 {
		r.work(t, "optimizer", time.Minute)
	}
	states := map[string]string{}
	for _, p := range find(t, r.after(t, 0), "ml.run.state").Sum().DataPoints().All() {
		if p.IntValue() == 1 {
			id, _ := p.Attributes().Get("ml.run.id")
			name, _ := p.Attributes().Get("ml.run.state")
			states[id.Str()] = name.Str()
		}
	}
	assert.Equal(t, map[string]string{"run-a": "silent", "run-b": "running"}, states)
}

// A collector that starts while a run goes on knows it from its next span.
func TestTheCollectorRestarts(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.resource = map[string]any{"ml.run.attempt": 3}
	r.clock = r.clock.Add(time.Hour)
	r.work(t, "backward", time.Second)
	assert.Equal(t, "unknown", state(t, r.after(t, 0)), "no step was seen yet")
	r.work(t, "optimizer", time.Second)
	r.after(t, 0)
	md := r.after(t, 0)
	assert.Equal(t, "running", state(t, md))
	assert.Equal(t, map[string]float64{"productive": 2}, used(t, md))
	assert.Equal(t, int64(1), counters(md)["ml.run.attempts"], "those before were not seen")
}

// An attempt that begins starts the clocks of its run anew.
func TestARunThatIsTriedAgain(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.resource = map[string]any{"ml.run.attempt": 0}
	r.work(t, "forward", time.Second)
	r.work(t, "optimizer", time.Second)
	r.after(t, 0)
	assert.Equal(t, "silent", state(t, r.after(t, 10*time.Minute)))
	r.resource = map[string]any{"ml.run.attempt": 1}
	r.clock = r.clock.Add(5 * time.Minute)
	r.work(t, "data_load", time.Second)
	r.work(t, "forward", time.Second)
	r.work(t, "optimizer", time.Second)
	r.after(t, 0)
	require.NoError(t, r.connector.emit(t.Context(), true))
	md := lastOf(t, r.sink)
	assert.Equal(t, "running", state(t, md))
	assert.Equal(t, int64(2), counters(md)["ml.run.attempts"])
	assert.Equal(t, map[string]float64{"productive": 4, "data_load": 1, "unknown": 900}, used(t, md))
	assert.Equal(t, uint64(2), timedSteps(t, md), "the time between is of no step")
}

// However many runs there are, those beyond the limit have no state, and their
// time and attempts are added up.
func TestMoreRunsThanAllowed(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	r := newRun(t, cfg)
	for n := range cfg.MaxRuns + 50 {
		r.run = "run-" + strconv.Itoa(n)
		r.work(t, "optimizer", time.Second)
	}
	r.after(t, 0)
	md := r.after(t, 0)
	states, sum := 0, 0.0
	for m := range metricsOf(md) {
		switch m.Name() {
		case "ml.run.state":
			states += m.Sum().DataPoints().Len()
		case "ml.run.time":
			for _, p := range m.Sum().DataPoints().All() {
				sum += p.DoubleValue()
			}
		}
	}
	assert.Equal(t, 6*cfg.MaxRuns, states)
	assert.Equal(t, int64(cfg.MaxRuns+50), counters(md)["ml.run.attempts"])
	assert.InDelta(t, cfg.MaxRuns+50, sum, 1e-9)
}

// The newest step waits for a forward that shows it to be over, but not long.
func TestTheNewestStepIsTold(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "forward", time.Second)
	r.work(t, "optimizer", time.Second)
	r.after(t, 0)
	r.after(t, 15*time.Second)
	for m := range metricsOf(r.after(t, 15*time.Second)) {
		assert.NotEqual(t, "ml.step.duration", m.Name(), "another optimizer may follow")
	}
	assert.Equal(t, uint64(1), timedSteps(t, r.after(t, 45*time.Second)))
	r.work(t, "forward", time.Second)
	assert.Equal(t, uint64(1), timedSteps(t, r.after(t, 0)), "once")
}

// A batch that is a step is told at once: nothing of it is awaited.
func TestABatchIsAWholeStep(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.work(t, "batch", time.Second)
	r.after(t, 0)
	assert.Equal(t, uint64(1), timedSteps(t, r.after(t, 0)))
}

// What an attempt sent last may come after the next one has begun, and is of
// neither.
func TestALateSpanOfAnEarlierAttempt(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	attempt := func(n int) { r.resource = map[string]any{"ml.run.attempt": n} }
	attempt(0)
	r.work(t, "forward", time.Second)
	died := r.clock
	attempt(1)
	r.clock = died.Add(10 * time.Second)
	r.work(t, "forward", time.Second)
	now := r.clock
	attempt(0)
	r.clock = died
	r.work(t, "optimizer", 2*time.Second)
	r.clock = now
	r.after(t, 0)
	md := r.after(t, 0)
	assert.Equal(t, map[string]float64{"productive": 2, "unknown": 10}, used(t, md))
	assert.Equal(t, int64(2), counters(md)["ml.run.attempts"])
	assert.Equal(t, int64(1), counters(md)["ml.steps"], "a step is one all the same")
}
