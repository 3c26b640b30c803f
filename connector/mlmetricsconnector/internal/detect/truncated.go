package detect

import (
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addService(mlattr.ProblemTruncated, truncated) }

// truncatedRule: a tenth of the answers and twice the usual share.
var truncatedRule = shift.ProportionRule{Least: 0.1, Times: 2, Count: 5}

// truncated finds models of whose answers more are cut at a limit of tokens.
func truncated(s *service) {
	s.models(func(name string, m *serving.Model) {
		found := m.Truncated.Find(s.now, &truncatedRule)
		s.proportion("answers of "+name+" reached their limit of tokens", &found, m.Finished.Ratio(),
			"Raise the limit of output tokens, or find out why the answers have become longer.")
	})
}
