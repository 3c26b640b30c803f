package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemFailing, failing) }

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
	s.proportion(of+" failed", &worst, math.NaN(), "Open the failures of the service and reproduce the newest one.")
}
