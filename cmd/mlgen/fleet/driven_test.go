package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
)

var drivenStart = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// named returns the only span of a name.
func named(t *testing.T, batches []scenario.Batch, name string) ptrace.Span {
	var found []ptrace.Span
	for _, b := range batches {
		for _, rs := range b.Traces.ResourceSpans().All() {
			for _, span := range rs.ScopeSpans().At(0).Spans().All() {
				if span.Name() == name {
					found = append(found, span)
				}
			}
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

func length(span ptrace.Span) time.Duration {
	return span.EndTimestamp().AsTime().Sub(span.StartTimestamp().AsTime())
}

// A caller decides how long each step and each checkpoint takes.
func TestStepToTakesAsLongAsItIsTold(t *testing.T) {
	site := NewSite("driven", scenario.Settings{Seed: 1, Rate: 1, MetricsInterval: time.Hour})
	run := site.Train(Training{Service: "trainer", Job: 7, Places: []Place{{Host: "n1"}}})
	at := drivenStart
	run.StepTo(at)
	for _, step := range []time.Duration{20 * time.Second, 90 * time.Second, 5 * time.Second} {
		at = at.Add(step)
		assert.Equal(t, step, length(named(t, run.StepTo(at), "train_step")))
	}
	at = at.Add(40 * time.Second)
	assert.Equal(t, 40*time.Second, length(named(t, run.SaveTo(at), "save_checkpoint")))

	run.RestartAt(run.Places, at.Add(time.Hour))
	batches := run.StepTo(at.Add(time.Hour + 30*time.Second))
	assert.Equal(t, 30*time.Second, length(named(t, batches, "train_step")), "the pause is no step")
	assert.Equal(t, at.Add(time.Hour), named(t, batches, "load_checkpoint").EndTimestamp().AsTime())
}

// A GPU that has failed and one that heat slows down say so.
func TestConditionsOfGPUs(t *testing.T) {
	site := NewSite("gpus", scenario.Settings{Seed: 1, Rate: 1, MetricsInterval: time.Second})
	g := site.AddHost("n1", 1).GPUs[0]
	read := func(seconds int, metric, key, value string) (int64, float64) {
		for _, m := range site.Step(drivenStart.Add(time.Duration(seconds) * time.Second))[0].Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != metric {
				continue
			}
			for _, p := range m.Sum().DataPoints().All() {
				if is, _ := p.Attributes().Get(key); is.Str() == value {
					return p.IntValue(), p.DoubleValue()
				}
			}
		}
		require.Fail(t, "no such point", "%s %s", metric, value)
		return 0, 0
	}
	const reason, heat = "nvidia.gpu.throttle.reason", "hw_thermal_slowdown"
	failed, _ := read(1, "hw.status", "hw.state", "failed")
	assert.Zero(t, failed)
	active, _ := read(2, "nvidia.gpu.throttle.active", reason, heat)
	assert.Zero(t, active)
	g.Failed, g.Throttled = true, 1
	failed, _ = read(3, "hw.status", "hw.state", "failed")
	assert.Equal(t, int64(1), failed)
	ok, _ := read(4, "hw.status", "hw.state", "ok")
	assert.Zero(t, ok)
	active, _ = read(5, "nvidia.gpu.throttle.active", reason, heat)
	assert.Equal(t, int64(1), active)
	_, throttled := read(6, "nvidia.gpu.throttle.time", reason, heat)
	assert.InDelta(t, 4, throttled, 1e-9, "since the reading before")
}
