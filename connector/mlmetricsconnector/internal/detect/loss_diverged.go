package detect

import (
	"fmt"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() { addLoss(mlattr.ProblemLossDiverged, diverged) }

// diverged reports a loss that has risen and stays there.
func diverged(l *runs.Loss, p *problem.Problem) bool {
	d := l.Diverged
	if d == nil {
		return false
	}
	p.Onset, p.Value, p.Usual, p.Count = d.Onset, d.Loss, d.Best, d.Count
	p.Evidence = []string{fmt.Sprintf("median loss %.4g, at best %.4g", d.Loss, d.Best)}
	p.Next = "Compare the learning rate and the data with those of the best step, and consider going back to its checkpoint."
	return true
}
