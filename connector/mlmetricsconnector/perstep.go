package mlmetricsconnector

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// operationTrainStep is the ml.operation of tokens that are known from the
	// number of steps.
	operationTrainStep = "train_step"
	// maxPerStep is the largest number of tokens or samples of a step that is
	// believed.
	maxPerStep = 1 << 40
	// maxFLOPsPerToken is the largest number of operations for a token that is
	// believed: far above that of any model.
	maxFLOPsPerToken = 1e18
)

// perStep is what a resource says of each step of a rank, because its client
// does not: it comes from ml_enrich's configuration or from the launcher. 0 is
// nothing.
type perStep struct {
	tokens, samples float64
	flopsPerToken   float64
}

// perStepOf reads a resource. What its client reports of each step itself is
// left out.
func perStepOf(facts *mlattr.Facts) (per perStep) {
	bounded := func(key string, most float64) float64 {
		if n, ok := facts.Double(key); ok && n > 0 && n <= most {
			return n
		}
		return 0
	}
	per.tokens = bounded(mlattr.TokensPerStep, maxPerStep)
	if !facts.Systems.Has(mlattr.ReportsSamples) {
		per.samples = bounded(mlattr.SamplesPerStep, maxPerStep)
	}
	per.flopsPerToken = bounded(mlattr.FLOPsPerToken, maxFLOPsPerToken)
	return per
}

// countPerStep counts what the steps of a span have, each as many as its rank
// has, to the nearest whole number: those of the run are the sum of its ranks.
// Where a span reports samples itself, these count.
func (r *reader) countPerStep(u *unit) {
	of := func(per float64) int64 { return int64(math.Round(per * float64(u.steps))) }
	if n := of(u.per.tokens); n > 0 {
		r.count(u, series.Tokens, u.source, n, mlattr.TokenTypeInput, u.model, operationTrainStep, u.role)
	}
	if n := of(u.per.samples); n > 0 && u.samples == 0 {
		r.count(u, series.Samples, u.source, n)
	}
	if u.per.flopsPerToken > 0 {
		r.update(u, series.FLOPsPerToken, u.source).Value = u.per.flopsPerToken
	}
}
