package mlmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// at makes the next spans those of a rank on a host, in an attempt of the run.
func (r *run) at(host string, attempt int) {
	r.resource = map[string]any{"host.name": host, "ml.rank.global": 0, "ml.run.attempt": attempt}
}

// A run that restarts on another host is where it runs now: it is neither stalled
// for what it left behind, nor without a usual step time.
func TestARestartOnAnotherHost(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.gpu = true
	r.at("n1", 0)
	r.steps(t, 100, time.Second)
	r.after(t, 0)
	r.at("n2", 1)
	for range 10 {
		r.steps(t, 30, 2*time.Second)
		r.after(t, 0)
	}
	md := r.after(t, 0)
	assert.Equal(t, "running", state(t, md))
	onsets, _ := problems(t, md)
	require.Contains(t, onsets, "trainer/slow/run-a")
	assert.Len(t, onsets, 1)

	hung := r.clock
	md = r.after(t, 10*time.Minute)
	assert.Equal(t, "stalled", state(t, md))
	assertProblem(t, md, "trainer/looks_hung/run-a", hung)
}

// A run that goes on being slow stays slow, and what was usual before stays usual,
// until its steps are as fast again.
func TestASlowRunThatGoesOn(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.steps(t, 100, time.Second)
	began := r.clock
	for range 400 {
		r.steps(t, 5, 2*time.Second)
		r.after(t, 0)
	}
	md := r.after(t, 0)
	onsets, _ := problems(t, md)
	// Steps are attributed one emission late.
	assert.WithinDuration(t, began, onsets["trainer/slow/run-a"], 10*time.Second)
	times, _ := gauges(t, md, "ml.run.step.time")
	assert.Equal(t, map[string]float64{"trainer/recent/run-a": 2, "trainer/usual/run-a": 1}, times)
	r.steps(t, 20, time.Second)
	r.after(t, 0)
	r.steps(t, 1, time.Second)
	assertEnd(t, r.after(t, 0), "trainer/slow/run-a")
}

// failing sends requests of which every eighth fails.
func (r *run) failing(t *testing.T, service string, n int) {
	t.Helper()
	for i := range n {
		class := ""
		if i%8 == 7 {
			class = "timeout"
		}
		r.request(t, service, class)
	}
}

// Failures do not become usual while a service fails.
func TestFailuresThatGoOn(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.request(t, "agent", make([]string, 300)...)
	r.after(t, time.Second)
	for range 50 {
		r.failing(t, "agent", 100)
		onsets, _ := problems(t, r.after(t, time.Second))
		require.Contains(t, onsets, "agent/failing")
	}
	ratios, _ := gauges(t, r.after(t, time.Second), "ml.request.error.ratio")
	assert.InDelta(t, 0, ratios["agent/usual"], 0)
	r.request(t, "agent", make([]string, 100)...)
	assertEnd(t, r.after(t, time.Second), "agent/failing")
}

// An agent of which a tool fails is failing, although its model answers.
func TestAnAgentWhoseToolFails(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	for i := range 300 {
		r.spans++
		td := ptrace.NewTraces()
		span := addSpan(td, "", 2, r.spans)
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "agent")
		span.Attributes().PutStr("gen_ai.operation.name", "invoke_agent")
		if i >= 250 && i%5 == 0 {
			span.Attributes().PutStr("error.type", "ToolTimeout")
			span.Status().SetCode(ptrace.StatusCodeError)
		}
		require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
		r.request(t, "agent", "")
	}
	md := r.after(t, time.Second)
	onsets, _ := problems(t, md)
	assert.Contains(t, onsets, "agent/failing")
	ratios, _ := gauges(t, md, "ml.request.error.ratio")
	assert.Equal(t, map[string]float64{"agent/recent": 0.1, "agent/usual": 0}, ratios)
}

// A problem lasts longer than the series of its run, and does not keep the run alive.
func TestAProblemOfARunThatExpired(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.MetricsExpiration = time.Minute
	r := newRun(t, cfg)
	emit := func(report bool) map[string]time.Time {
		if report {
			r.connector.problems.Report(problem.Problem{
				Kind: "slow", Onset: r.clock, Evident: r.clock, Subject: problem.Subject{Resource: streams.Resource{Service: "trainer"}, Run: "run-a"},
			})
		}
		onsets, _ := problems(t, r.after(t, 0))
		r.clock = r.clock.Add(15 * time.Second)
		return onsets
	}
	assert.Len(t, emit(true), 1)
	assert.Zero(t, r.connector.store.Runs())
	for range 59 {
		r.clock = r.clock.Add(45 * time.Second)
		assert.Len(t, emit(false), 1)
	}
	r.clock = r.clock.Add(45 * time.Second)
	assert.Empty(t, emit(false), "an hour is over")
	assert.Zero(t, r.after(t, 0).DataPointCount())
}
