package detect

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

// costly finds services whose tasks take more tokens, or cost more, than usual.
func costly(s *service) {
	l := level{what: "a task", unit: "{token}", value: math.Exp, telemetry: s.Counted.Ratio()}
	shown := s.Tokens.Shift()
	if costs := s.Costs.Shift(); costs.Lasts {
		shown, l.unit = costs, "USD"
	}
	s.shifted(shown, &l)
}

// looping finds a task that calls the same again and again.
func looping(s *service) {
	t := s.Looping
	if t == nil {
		return
	}
	usual, _ := s.Repeats.Usual()
	s.add(problem.Problem{
		Onset: t.LoopingSince,
		Measure: problem.Measure{
			Value: float64(t.Most), Usual: float64(usual), Unit: "{call}",
			Window: s.now.Sub(t.LoopingSince), Count: int64(t.Most), Telemetry: math.NaN(),
		},
		Evidence: []string{fmt.Sprintf("%s was called %d times in one task, with the same arguments where they are known, usually at most %d times", orUnknown(t.Repeated), t.Most, usual)},
	})
}

// toolRule needs a usual proportion: many tools fail often.
var toolRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 5}

// toolErrors finds tools of whose calls more fail.
func toolErrors(s *service) {
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		found := s.Tools[name].Outcomes.Find(s.now, &toolRule)
		s.proportion("calls of "+orUnknown(name)+" failed", &found, math.NaN())
	}
}
