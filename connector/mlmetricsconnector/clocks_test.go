package mlmetricsconnector

import (
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
	spans     uint16
}

func newRun(t *testing.T, cfg *Config) *run {
	t.Helper()
	sink := new(consumertest.MetricsSink)
	c, err := newMetricsConnector(connectortest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	r := &run{connector: c, sink: sink, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	c.now = func() time.Time { return r.clock }
	t.Cleanup(func() { require.NoError(t, c.Shutdown(t.Context())) })
	return r
}

// work moves the clock to the end of a span of a phase and sends it.
func (r *run) work(t *testing.T, phase string, took time.Duration) {
	t.Helper()
	r.spans++
	td := ptrace.NewTraces()
	span := addSpan(td, "run-a", 1, r.spans)
	span.Attributes().PutStr("ml.phase", phase)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.clock))
	r.clock = r.clock.Add(took)
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.clock))
	require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
}

// after moves the clock and emits.
func (r *run) after(t *testing.T, d time.Duration) pmetric.Metrics {
	t.Helper()
	r.clock = r.clock.Add(d)
	require.NoError(t, r.connector.emit(t.Context(), false))
	return lastOf(t, r.sink)
}

// state is the one state that is 1.
func state(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	var found []string
	points := find(t, md, "ml.run.state").Sum().DataPoints()
	assert.Equal(t, 4, points.Len())
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
	assert.Equal(t, "stalled", state(t, r.after(t, 2*time.Minute)))
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
	assert.Empty(t, r.connector.clocks.byRun)
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

// However many steps end between two emissions, few of them wait.
func TestStepsDoNotPileUp(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for range 3 * 4096 {
		r.work(t, "optimizer", time.Millisecond)
	}
	for _, clock := range r.connector.clocks.byRun {
		assert.Less(t, len(clock.totals.Steps), maxSteps+4096)
	}
	r.after(t, 0)
	assert.Equal(t, uint64(3*4096), timedSteps(t, r.after(t, 0)))
}
