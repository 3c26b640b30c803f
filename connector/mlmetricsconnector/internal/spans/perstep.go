package spans

import (
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

const (
	// operationTrainStep is the ml.operation of tokens that are derived from
	// the number of steps.
	operationTrainStep = "train_step"
	// maxFLOPsPerToken is the largest accepted number of operations per token,
	// far above that of any model.
	maxFLOPsPerToken = 1e18
)

// perStep is what a resource states about each step of a rank, from ml_enrich's
// configuration or the launcher. 0 means not stated.
type perStep struct {
	tokens, samples float64
	flopsPerToken   float64
}

// perStepOf reads a resource. It omits what the client reports for each step
// itself.
func perStepOf(facts *vocabulary.Facts) (per perStep) {
	bounded := func(key string, most float64) float64 {
		if n, ok := facts.Double(key); ok && n > 0 && n <= most {
			return n
		}
		return 0
	}
	per.tokens = bounded(mlattr.TokensPerStep, program.MaxPerStep)
	if !facts.Systems.Has(table.ReportsSamples) {
		per.samples = bounded(mlattr.SamplesPerStep, program.MaxPerStep)
	}
	per.flopsPerToken = bounded(mlattr.FLOPsPerToken, maxFLOPsPerToken)
	return per
}

// countPerStep counts tokens and samples of the steps of a span, rounded to
// whole numbers. Each rank counts its own; the run's total is their sum.
// Samples that a span reports take precedence.
func (r *result) countPerStep(u *unit) {
	of := func(per float64) int64 { return int64(math.Round(per * float64(u.Steps))) }
	if n := of(u.per.tokens); n > 0 {
		r.count(u, series.Tokens, u.Source, n, mlattr.TokenTypeInput, u.model, operationTrainStep, u.role)
	}
	if n := of(u.per.samples); n > 0 && u.samples == 0 {
		r.count(u, series.Samples, u.Source, n)
	}
	if u.per.flopsPerToken > 0 {
		r.update(u, series.FLOPsPerToken, u.Source).Value = u.per.flopsPerToken
	}
}
