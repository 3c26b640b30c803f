package detect

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemModelSubstituted, substituted) }

// substituted finds models for which another one answers.
func substituted(s *service) {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		m := s.Models[name]
		a := &m.Answers
		if !a.Substituted || name == "" {
			continue
		}
		usual, unusual := a.Most()
		s.add(problem.Problem{
			Onset: a.Since, Evident: m.Newest, Value: float64(a.Of) / float64(a.Others), Usual: 0, Unit: "1",
			Window: s.now.Sub(a.Since), Count: int64(a.Others), Telemetry: math.NaN(),
			Evidence: []string{fmt.Sprintf("%d of %d requests for %s were answered by %s, usually by %s", a.Of, a.Others, name, unusual, usual)},
			Next:     "Ask the provider, or pin the version of the model.",
		})
	}
}
