package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemAnswersChanged, answersChanged) }

// unusableRule: a twentieth of the answers and three times the usual share.
var unusableRule = shift.ProportionRule{Least: 0.05, Times: 3, Count: 5}

// answersChanged finds models whose answers are empty, withheld, half as long or of other
// dimensions.
func answersChanged(s *service) {
	s.models(func(name string, m *serving.Model) {
		found := m.Unusable.Find(s.now, &unusableRule)
		s.proportion("answers of "+name+" were empty, withheld or refused", &found, math.NaN(), "Open the newest of these requests, and compare its prompt with one from before.")
		s.shifted(m.Length.Shift(), &level{
			what: "an answer of " + name, unit: "{token}",
			value: func(v float64) float64 { return math.Expm1(-v) }, telemetry: m.All.Ratio(),
			next: "Find out why the answers have become shorter.",
		})
		s.unusual(&m.Dimensions, m.Newest, name, "%d of %d embeddings of %s have %s dimensions, usually %s",
			"Do not mix them in one index: ask the provider, or pin the version of the model.")
	})
}
