package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() {
	addPlain(mlattr.ProblemNonfinite, eachLoss(nonfinite), mlattr.ProblemLossDiverged)
}

// eachLoss finds problems of the loss of single runs, and remembers nothing. p has what
// all its problems have in common.
type eachLoss func(l *runs.Loss, p problem.Problem, report func(problem.Problem))

// Detect looks at the losses of all runs that take steps.
func (d eachLoss) Detect(s *State, report func(problem.Problem)) {
	for i := range s.Losses {
		l := &s.Losses[i]
		p := problem.Problem{
			Subject: problem.Subject{Resource: l.Key.Resource, Run: l.Key.ID}, Evident: l.Seen, Rank: l.Rank, Unit: "1",
			Telemetry: math.NaN(), GPUs: s.GPUs.Uses[runs.RunOf(l.Key)].GPUs,
		}
		if l.Run != nil {
			p.Telemetry = l.Run.Members.Telemetry()
		}
		d(l, p, report)
	}
}

// nonfinite reports losses that are NaN or infinite.
func nonfinite(l *runs.Loss, p problem.Problem, report func(problem.Problem)) {
	bad := l.Nonfinite
	if bad == nil {
		return
	}
	p.Kind, p.Onset, p.Value, p.Usual, p.Unit = mlattr.ProblemNonfinite, bad.Since, float64(bad.Count), math.NaN(), "{loss}"
	p.Count = int64(bad.Of)
	p.Evidence = []string{fmt.Sprintf("%d of the newest %d losses are NaN or infinite", bad.Count, bad.Of)}
	p.Next = "Stop the run, and go back to the last checkpoint before; look at the learning rate, the gradient norm and the batch."
	report(p)
}
