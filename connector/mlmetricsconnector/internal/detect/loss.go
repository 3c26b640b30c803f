package detect

import (
	"fmt"
	"math"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/loss"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// losses reports what the losses of runs that take steps show: one that is NaN or infinite,
// has risen for a moment, has risen and stays there, or does not change any more. A loss
// that is not finite is graver than norms of the gradient that are not.
func losses(s *State, report func(problem.Problem)) {
	for i := range s.Losses {
		l := &s.Losses[i]
		// The evidence is from the value, the usual one, the number of losses and the spreads.
		for _, is := range [...]struct {
			kind                 string
			found                *loss.Found
			unit, rank, evidence string
		}{
			{mlattr.ProblemLossDiverged, l.Diverged, "1", l.Rank, "median loss %.4[1]g, at best %.4[2]g"},
			{mlattr.ProblemLossFrozen, l.Frozen, "1", l.Rank, "the newest %[3]d losses are all %.6[1]g"},
			{mlattr.ProblemLossSpike, l.Spike, "1", l.Rank, "loss %.4[1]g, %.4[2]g before: %.0[4]f times their spread above the median of %[3]d"},
			{mlattr.ProblemLossDiverged, l.NormNonfinite, "{norm}", l.Rank, "the newest %[3]d norms of the gradient are all NaN or infinite"},
			{mlattr.ProblemLossSpike, l.NormSpike, "1", l.Rank, "norm of the gradient %.4[1]g, %.4[2]g before: %.0[4]f times its spread above the median of %[3]d"},
			{mlattr.ProblemNonfinite, l.Nonfinite, "{loss}", l.Broken, "%[1]v of the newest %[3]d losses are NaN or infinite"},
		} {
			f := is.found
			if f == nil || f == l.NormNonfinite && l.Nonfinite != nil {
				continue
			}
			p := problem.Problem{
				Kind: is.kind, Subject: problem.Subject{Resource: l.Key.Resource, Run: l.Key.ID}, Onset: f.Onset, Evident: l.Seen,
				Measure: problem.Measure{Value: f.Value, Usual: f.Usual, Unit: is.unit, Count: f.Count, Telemetry: math.NaN()},
				Rank:    is.rank, Evidence: []string{fmt.Sprintf(is.evidence, f.Value, f.Usual, f.Count, f.Spreads)},
			}
			if use := s.GPUs.Runs[runs.RunOf(l.Key)].Use; use != nil {
				p.GPUs = use.GPUs
			}
			if l.Run != nil {
				p.Telemetry = l.Run.Members.Telemetry()
				hold(&p, l.Run)
			}
			report(p)
		}
	}
}
