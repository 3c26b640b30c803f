package detect

import (
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// silent reports a run that is silent and holds GPUs of which nothing is known
// any more, not before their host, which it may follow from.
func silent(s *State, r *runs.Run, report func(problem.Problem)) {
	held := &r.GPUs.Held
	if r.State != runs.Silent || held.Silent.IsZero() || s.Now.Sub(held.Silent) <= s.Limits.Stall || s.Now.Sub(s.GPUs.Heard[held.Host]) <= s.Limits.Stall {
		return
	}
	p := of(r, mlattr.ProblemRunSilent)
	p.Onset, p.Value, p.Unit = r.Since, s.Now.Sub(r.Since).Seconds(), "s"
	p.Evidence = []string{lastRead(r)}
	rankEvidence(&p, r, true)
	p.Rank, p.Host = "", held.Host
	p.Next = "See whether its processes still run, and why nothing of its GPUs arrives."
	report(p)
}
