package detect

import (
	"maps"
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemToolErrors, toolErrors) }

// toolRule needs a usual proportion: many tools fail often.
var toolRule = shift.ProportionRule{Least: 0.1, Times: 3, Count: 5}

// toolErrors finds tools of whose calls more fail.
func toolErrors(s *service) {
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		found := s.Tools[name].Outcomes.Find(s.now, &toolRule)
		s.proportion("calls of "+orUnknown(name)+" failed", &found, math.NaN(), "Look at the failed calls of the tool, newest first.")
	}
}
