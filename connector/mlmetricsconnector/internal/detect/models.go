package detect

import (
	"maps"
	"math"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

// unusableRule: a twentieth of the answers and three times the usual share.
var unusableRule = shift.ProportionRule{Least: 0.05, Times: 3, Count: 5}

// answersChanged finds models whose answers are empty, withheld, half as long or of other
// dimensions.
func answersChanged(s *service, name string, m *serving.Model) {
	found := m.Unusable.Find(s.now, &unusableRule)
	s.proportion("answers of "+name+" were empty, withheld or refused", &found, math.NaN())
	s.shifted(m.Length.Shift(), &level{
		what: "an answer of " + name, unit: "{token}",
		value: func(v float64) float64 { return math.Expm1(-v) }, telemetry: m.All.Ratio(),
		next: "Find out why the answers have become shorter.",
	})
	s.unusual(&m.Dimensions, m.Newest, name, "%d of %d embeddings of %s have %s dimensions, usually %s",
		"Do not mix them in one index: ask the provider, or pin the version of the model.")
}

// cacheUsual is the least usual share of cached tokens that can collapse, and
// cacheFactor what it falls to, as a share of the usual one.
const cacheUsual, cacheFactor = 0.2, 1.0 / 3

// cacheCollapsed finds models of whose input fewer tokens are read from a cache.
func cacheCollapsed(s *service, name string, m *serving.Model) {
	if of := m.Cached.Shift(); -of.Usual >= cacheUsual && -of.Value <= -of.Usual*cacheFactor {
		s.shifted(of, &level{
			what: "cached share of the input of " + name, unit: "1",
			value: func(v float64) float64 { return 0 - v }, telemetry: m.Caches.Ratio(),
		})
	}
}

// substituted finds models for which another one answers.
func substituted(s *service) {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if m := s.Models[name]; name != "" {
			s.unusual(&m.Answers, m.Newest, name, "%d of %d requests for %s were answered by %s, usually by %s", "")
		}
	}
}

// throughput finds models of which fewer tokens come.
func throughput(s *service, name string, m *serving.Model) {
	s.shifted(m.PerToken.Shift(), &level{
		what: "output of one request to " + name, unit: "{token}/s",
		value: func(v float64) float64 { return math.Exp(-v) }, telemetry: m.All.Ratio(),
		works: [shift.Works]string{"longer prompts", "shorter answers"},
	})
}

// truncatedRule: a tenth of the answers and twice the usual share.
var truncatedRule = shift.ProportionRule{Least: 0.1, Times: 2, Count: 5}

// truncated finds models of whose answers more are cut at a limit of tokens.
func truncated(s *service, name string, m *serving.Model) {
	found := m.Truncated.Find(s.now, &truncatedRule)
	s.proportion("answers of "+name+" reached their limit of tokens", &found, m.Finished.Ratio())
}
