package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

// mostOf is the share of the failures of all models from which on one is named.
const mostOf = 0.8

// failing finds services of whose requests or calls more fail, and of several models the
// one of whose requests most do.
func failing(s *service) {
	of, worst := s.FailingOf, s.Failing
	if len(s.Models) > 1 {
		all, most, mostly := 0, 0, ""
		s.models(func(name string, m *serving.Model) {
			found := m.Failures.Find(s.now, &serving.FailingRule)
			if all += found.Counts.Of; found.Counts.Of > most {
				most, mostly = found.Counts.Of, name
			}
			if found.Shifted && (!worst.Shifted || found.Shown.Ratio() > worst.Shown.Ratio()) {
				of, worst = "requests to "+name, found
			}
		})
		if of == serving.ToModels && float64(most) >= mostOf*float64(all) {
			of += ", mostly to " + mostly + ","
		}
	}
	s.proportion(of+" failed", &worst, math.NaN())
}

// slowRequests finds services whose requests or calls take longer than usual.
func slowRequests(s *service) {
	slow := func(what string, of *shift.Level, telemetry float64) {
		s.shifted(of.Shift(), &level{
			what: what, unit: "s", value: math.Exp, telemetry: telemetry,
			works: [shift.Works]string{"longer prompts", "longer answers"},
		})
	}
	slow("requests to agents", &s.Agents.Times, math.NaN())
	s.shifted(s.Calls.Times.Shift(), &level{
		what: "calls, of what is typical of their functions", unit: "1", value: math.Exp, telemetry: math.NaN(),
		next: "Compare a slow call with one from before the onset.",
	})
	s.models(func(name string, m *serving.Model) {
		slow("requests to "+name, &m.Times, m.All.Ratio())
		slow("first tokens of "+name, &m.FirstToken, math.NaN())
		slow("waiting of requests to "+name, &m.Queued, math.NaN())
	})
}

// tailRule: 0.02 and five times the usual share. mostTail is the greatest share that
// is a tail: where more take longer, all do.
var tailRule = shift.ProportionRule{Least: 0.02, Times: 5, Count: 10, Steady: true}

const mostTail = 0.4

// tailLatency finds services of whose requests or calls more take far longer than others.
func tailLatency(s *service) {
	slow := func(what string, of *shift.Tail, unit string) {
		found := of.Over.Find(s.now, &tailRule)
		if found.Shown.Ratio() > mostTail {
			return
		}
		s.proportion(fmt.Sprintf("%s took more than %s", what, figure(math.Exp(of.Limit()), unit)), &found, math.NaN())
	}
	slow("requests to agents", &s.Agents.Tail, "s")
	slow("calls, of what is typical of their functions,", &s.Calls.Tail, "1")
	s.models(func(name string, m *serving.Model) {
		if !m.Length.Shift().Lasts { // other answers vary otherwise
			slow("requests to "+name, &m.Tail, "s")
		}
	})
}

// retryRule: clients should keep retries below a tenth of their requests, by the
// retry budget of Google's Site Reliability Engineering (2016), chapter 21.
var retryRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 10}

// retryStorm finds services of whose requests more repeat a failed one, or that have many
// more of which most fail.
func retryStorm(s *service) {
	found := s.Retries.Repeated.Find(s.now, &retryRule)
	s.proportion("requests repeat one that failed", &found, math.NaN())
	if storm := s.Retries.Storm(s.now); storm.All > 0 {
		rates := &s.Retries.Rates
		s.add(problem.Problem{
			Onset: rates.Since,
			Measure: problem.Measure{
				Value: float64(storm.All), Usual: float64(rates.Usual), Unit: "{request}",
				Window: serving.RateTime, Count: int64(storm.All), Telemetry: math.NaN(),
			},
			Evidence: []string{fmt.Sprintf("%d requests in 5 minutes, usually %d; %d of them failed", storm.All, rates.Usual, storm.Of)},
		})
	}
}
