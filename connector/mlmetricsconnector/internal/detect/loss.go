package detect

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// losses reports what the losses of runs that take steps show: one that is NaN or infinite,
// has risen for a moment, has risen and stays there, or does not change any more.
func losses(s *State, report func(problem.Problem)) {
	for i := range s.Losses {
		l := &s.Losses[i]
		found := func(kind string, onset time.Time, value, usual float64, count int64, evidence, next string) problem.Problem {
			p := problem.Problem{
				Kind: kind, Subject: problem.Subject{Resource: l.Key.Resource, Run: l.Key.ID}, Onset: onset, Evident: l.Seen,
				Measure: problem.Measure{Value: value, Usual: usual, Unit: "1", Count: count, Telemetry: math.NaN()},
				Rank:    l.Rank, Evidence: []string{evidence}, Next: next,
			}
			if use := s.GPUs.Runs[runs.RunOf(l.Key)].Use; use != nil {
				p.GPUs = use.GPUs
			}
			if l.Run != nil {
				p.Telemetry = l.Run.Members.Telemetry()
				hold(&p, l.Run)
			}
			return p
		}
		if d := l.Diverged; d != nil {
			report(found(mlattr.ProblemLossDiverged, d.Onset, d.Loss, d.Best, d.Count, fmt.Sprintf("median loss %.4g, at best %.4g", d.Loss, d.Best),
				"Compare the learning rate and the data with those of the best step, and consider going back to its checkpoint."))
		}
		if f := l.Frozen; f != nil {
			report(found(mlattr.ProblemLossFrozen, f.Since, f.Loss, math.NaN(), f.Count, fmt.Sprintf("the newest %d losses are all %.6g", f.Count, f.Loss),
				"See whether the batches still change, and whether the optimizer skips its steps."))
		}
		if high := l.Spike; high != nil {
			report(found(mlattr.ProblemLossSpike, high.Onset, high.Loss, high.Usual, high.Count,
				fmt.Sprintf("loss %.4g, %.4g before: %.0f times their spread above the median of %d", high.Loss, high.Usual, high.Spreads, high.Count),
				"Look at the batches and the gradient norm from this step on."))
		}
		if bad := l.Nonfinite; bad != nil {
			p := found(mlattr.ProblemNonfinite, bad.Since, float64(bad.Count), math.NaN(), int64(bad.Of),
				fmt.Sprintf("%d of the newest %d losses are NaN or infinite", bad.Count, bad.Of),
				"Stop the run, and go back to the last checkpoint before; look at the learning rate, the gradient norm and the batch.")
			p.Unit, p.Rank = "{loss}", l.Broken
			report(p)
		}
	}
}
