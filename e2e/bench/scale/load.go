package main

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/fleet"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// ranks is the number of ranks, with a GPU each, of a run, and spansOfStep that of
// the spans of a rank in a step.
const (
	ranks       = 8
	spansOfStep = 5
	// spansOfRequest is what a batching client sends at most by default.
	spansOfRequest = 512
)

// site is a simulated fleet, whose steps take a second on average.
type site struct {
	*fleet.Site
	at time.Time
}

// newSite returns a site of some runs. Other seeds have other ids; the names of the
// runs are the same.
func newSite(seed int64, runs int) *site {
	const rate = 20
	settings := scenario.Settings{Seed: seed, Rate: rate, Ranks: ranks, MetricsInterval: 10 * time.Second}
	return &site{Site: fleet.New(settings, fleet.Size{Runs: runs, Ranks: ranks, GPUs: ranks * runs}), at: time.Now().Add(-5 * time.Minute)}
}

// next returns what the site sends in some time.
func (s *site) next(length time.Duration) (spans []ptrace.Traces, points []pmetric.Metrics) {
	for end := s.at.Add(length); s.at.Before(end); {
		s.at = s.at.Add(s.StepTime())
		for _, batch := range s.Step(s.at) {
			switch batch.Signal {
			case sentlog.SignalTraces:
				spans = append(spans, batch.Traces)
			case sentlog.SignalMetrics:
				points = append(points, batch.Metrics)
			}
		}
	}
	return spans, points
}

// byProcess puts the spans of each process into a request of its own, as SDKs send
// them.
func byProcess(batches []ptrace.Traces) (requests []ptrace.Traces) {
	of := map[string]ptrace.Traces{}
	for _, batch := range batches {
		for _, rs := range batch.ResourceSpans().All() {
			id, _ := rs.Resource().Attributes().Get("service.instance.id")
			request, ok := of[id.Str()]
			if !ok || request.SpanCount() >= spansOfRequest {
				request = ptrace.NewTraces()
				rs.Resource().CopyTo(request.ResourceSpans().AppendEmpty().Resource())
				request.ResourceSpans().At(0).ScopeSpans().AppendEmpty()
				of[id.Str()] = request
				requests = append(requests, request)
			}
			for _, ss := range rs.ScopeSpans().All() {
				ss.Spans().MoveAndAppendTo(request.ResourceSpans().At(0).ScopeSpans().At(0).Spans())
			}
		}
	}
	return requests
}

// bySecond splits the requests of an agent into such as it sends if a run takes a
// step a second: of each process one step. In the agent's requests a step of a process
// has a resource of its own, because it is a trace.
func bySecond(batches []ptrace.Traces) (requests []ptrace.Traces) {
	for _, batch := range batches {
		var steps []ptrace.Traces
		of := map[string]int{}
		for _, rs := range batch.ResourceSpans().All() {
			id, _ := rs.Resource().Attributes().Get("service.instance.id")
			step := of[id.Str()]
			of[id.Str()]++
			if step == len(steps) {
				steps = append(steps, ptrace.NewTraces())
			}
			rs.CopyTo(steps[step].ResourceSpans().AppendEmpty())
		}
		requests = append(requests, steps...)
	}
	return requests
}

func spanCount(batches []ptrace.Traces) (n int) {
	for _, batch := range batches {
		n += batch.SpanCount()
	}
	return n
}

func pointCount(batches []pmetric.Metrics) (n int) {
	for _, batch := range batches {
		n += batch.DataPointCount()
	}
	return n
}
