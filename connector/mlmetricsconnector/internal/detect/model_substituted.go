package detect

import (
	"maps"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemModelSubstituted, substituted) }

// substituted finds models for which another one answers.
func substituted(s *service) {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if m := s.Models[name]; name != "" {
			s.unusual(&m.Answers, m.Newest, name, "%d of %d requests for %s were answered by %s, usually by %s",
				"Ask the provider, or pin the version of the model.")
		}
	}
}
