package detect

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addPlain(mlattr.ProblemLossSpike, eachLoss(spike)) }

// spike reports a loss that has risen for a moment.
func spike(l *runs.Loss, p problem.Problem, report func(problem.Problem)) {
	high := l.Spike
	if high == nil {
		return
	}
	p.Kind, p.Onset, p.Value, p.Usual, p.Count = mlattr.ProblemLossSpike, high.Onset, high.Loss, high.Usual, high.Count
	p.Evidence = []string{fmt.Sprintf("loss %.4g, %.4g before: %.0f times their spread above the median of %d", high.Loss, high.Usual, high.Spreads, high.Count)}
	p.Next = "Look at the batches and the gradient norm from this step on."
	report(p)
}
