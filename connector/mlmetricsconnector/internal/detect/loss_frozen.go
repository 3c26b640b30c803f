package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addPlain(mlattr.ProblemLossFrozen, eachLoss(frozen)) }

// frozen reports a loss that does not change any more.
func frozen(l *runs.Loss, p problem.Problem, report func(problem.Problem)) {
	f := l.Frozen
	if f == nil {
		return
	}
	p.Kind, p.Onset, p.Value, p.Usual, p.Count = mlattr.ProblemLossFrozen, f.Since, f.Loss, math.NaN(), f.Count
	p.Evidence = []string{fmt.Sprintf("the newest %d losses are all %.6g", f.Count, f.Loss)}
	p.Next = "See whether the batches still change, and whether the optimizer skips its steps."
	report(p)
}
