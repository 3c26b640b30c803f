package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemSlowRequests, slowRequests) }

// slowRequests finds services whose requests or calls take longer than usual.
func slowRequests(s *service) {
	slow := func(what string, of *shift.Level, telemetry float64) {
		s.shifted(of.Shift(), &level{
			what: what, unit: "s", value: math.Exp, telemetry: telemetry,
			works: [shift.Works]string{"longer prompts", "longer answers"},
			next:  "Compare a slow trace with one from before the onset.",
		})
	}
	slow("requests to agents", &s.AgentTimes, math.NaN())
	s.shifted(s.CallTimes.Shift(), &level{
		what: "calls, of what is typical of their functions", unit: "1", value: math.Exp, telemetry: math.NaN(),
		next: "Compare a slow call with one from before the onset.",
	})
	s.models(func(name string, m *serving.Model) {
		slow("requests to "+name, &m.Duration, m.All.Ratio())
		slow("first tokens of "+name, &m.FirstToken, math.NaN())
		slow("waiting of requests to "+name, &m.Queued, math.NaN())
	})
}
