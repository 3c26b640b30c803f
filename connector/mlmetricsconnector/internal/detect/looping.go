package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemLooping, looping) }

// looping finds a task that calls the same again and again.
func looping(s *service) {
	t := s.Looping
	if t == nil {
		return
	}
	usual, _ := s.Repeats.Usual()
	s.add(problem.Problem{
		Onset: t.LoopingSince, Value: float64(t.Most), Usual: float64(usual), Unit: "{call}",
		Window: s.now.Sub(t.LoopingSince), Count: int64(t.Most), Telemetry: math.NaN(),
		Evidence: []string{fmt.Sprintf("%s was called %d times in one task, with the same arguments where they are known, usually at most %d times", orUnknown(t.Repeated), t.Most, usual)},
		Next:     "Limit the steps of a task, and look at what the call returned.",
	})
}
