package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemRetryStorm, retryStorm) }

// retryRule: clients should keep retries below a tenth of their requests, by the
// retry budget of Google's Site Reliability Engineering (2016), chapter 21.
var retryRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 10}

// retryStorm finds services of whose requests more repeat a failed one, or that have many
// more of which most fail.
func retryStorm(s *service) {
	const next = "Let clients wait longer between attempts, and limit their retries."
	found := s.Retries.Repeated.Find(s.now, &retryRule)
	s.proportion("requests repeat one that failed", &found, math.NaN(), next)
	if storm := s.Retries.Storm(s.now); storm.All > 0 {
		rates := &s.Retries.Rates
		s.add(problem.Problem{
			Onset: rates.Since, Value: float64(storm.All), Usual: float64(rates.Usual), Unit: "{request}",
			Window: serving.RateTime, Count: int64(storm.All), Telemetry: math.NaN(), Next: next,
			Evidence: []string{fmt.Sprintf("%d requests in 5 minutes, usually %d; %d of them failed", storm.All, rates.Usual, storm.Of)},
		})
	}
}
