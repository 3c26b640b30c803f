package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addLoss(mlattr.ProblemNonfinite, nonfinite) }

// nonfinite reports losses that are NaN or infinite.
func nonfinite(l *runs.Loss, p *problem.Problem) bool {
	bad := l.Nonfinite
	if bad == nil {
		return false
	}
	p.Onset, p.Value, p.Usual, p.Unit = bad.Since, float64(bad.Count), math.NaN(), "{loss}"
	p.Count, p.Rank = int64(bad.Of), l.Broken
	p.Evidence = []string{fmt.Sprintf("%d of the newest %d losses are NaN or infinite", bad.Count, bad.Of)}
	p.Next = "Stop the run, and go back to the last checkpoint before; look at the learning rate, the gradient norm and the batch."
	return true
}
