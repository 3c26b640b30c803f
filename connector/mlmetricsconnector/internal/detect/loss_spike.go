package detect

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addLoss(mlattr.ProblemLossSpike, spike) }

// spike reports a loss that has risen for a moment.
func spike(l *runs.Loss, p *problem.Problem) bool {
	high := l.Spike
	if high == nil {
		return false
	}
	p.Onset, p.Value, p.Usual, p.Count = high.Onset, high.Loss, high.Usual, high.Count
	p.Evidence = []string{fmt.Sprintf("loss %.4g, %.4g before: %.0f times their spread above the median of %d", high.Loss, high.Usual, high.Spreads, high.Count)}
	p.Next = "Look at the batches and the gradient norm from this step on."
	return true
}
