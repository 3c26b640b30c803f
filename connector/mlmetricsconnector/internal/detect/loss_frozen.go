package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addLoss(mlattr.ProblemLossFrozen, frozen) }

// frozen reports a loss that does not change any more.
func frozen(l *runs.Loss, p *problem.Problem) bool {
	f := l.Frozen
	if f == nil {
		return false
	}
	p.Onset, p.Value, p.Usual, p.Count = f.Since, f.Loss, math.NaN(), f.Count
	p.Evidence = []string{fmt.Sprintf("the newest %d losses are all %.6g", f.Count, f.Loss)}
	p.Next = "See whether the batches still change, and whether the optimizer skips its steps."
	return true
}
