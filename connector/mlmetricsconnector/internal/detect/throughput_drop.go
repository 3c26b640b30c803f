package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemThroughputDrop, throughput) }

// throughput finds models of which fewer tokens come.
func throughput(s *service) {
	s.models(func(name string, m *serving.Model) {
		s.shifted(m.PerToken.Shift(), &level{
			what: "output of one request to " + name, unit: "{token}/s",
			value: func(v float64) float64 { return math.Exp(-v) }, telemetry: m.All.Ratio(),
			works: [shift.Works]string{"longer prompts", "shorter answers"},
			next:  "Look at the load and the GPUs of the model's server.",
		})
	})
}
