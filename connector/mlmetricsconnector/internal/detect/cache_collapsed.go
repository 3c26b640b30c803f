package detect

import (
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemCacheCollapsed, cacheCollapsed) }

// cacheUsual is the least usual share of cached tokens that can collapse, and
// cacheFactor what it falls to, as a share of the usual one.
const cacheUsual, cacheFactor = 0.2, 1.0 / 3

// cacheCollapsed finds models of whose input fewer tokens are read from a cache.
func cacheCollapsed(s *service) {
	s.models(func(name string, m *serving.Model) {
		if of := m.Cached.Shift(); -of.Usual >= cacheUsual && -of.Value <= -of.Usual*cacheFactor {
			s.shifted(of, &level{
				what: "cached share of the input of " + name, unit: "1",
				value: func(v float64) float64 { return 0 - v }, telemetry: m.Caches.Ratio(),
				next: "Find out what has changed at the beginning of the prompts.",
			})
		}
	})
}
