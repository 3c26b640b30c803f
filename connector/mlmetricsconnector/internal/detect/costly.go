package detect

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemCostly, costly) }

// costly finds services whose tasks take more tokens, or cost more, than usual.
func costly(s *service) {
	l := level{what: "a task", unit: "{token}", value: math.Exp, telemetry: s.Counted.Ratio(),
		next: "Compare the steps of a task with one from before the onset."}
	shown := s.Tokens.Shift()
	if costs := s.Costs.Shift(); costs.Lasts {
		shown, l.unit = costs, "USD"
	}
	s.shifted(shown, &l)
}
