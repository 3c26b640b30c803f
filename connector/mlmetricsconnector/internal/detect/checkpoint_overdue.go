package detect

import (
	"cmp"
	"fmt"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// overdue reports a run that takes steps and whose checkpoint is overdue on each rank
// that saves at a usual interval.
func overdue(_ *State, r *runs.Run, report func(problem.Problem)) {
	if r.State != runs.Running {
		return
	}
	var last *runs.Rank
	for rank := range present(r) {
		switch {
		case rank.Missing || !rank.Saves.Regular:
		case !rank.Saves.Late:
			return
		case last == nil || cmp.Or(cmp.Compare(rank.Saves.Missed.Last, last.Saves.Missed.Last), cmp.Compare(rank.Name, last.Name)) < 0:
			last = rank
		}
	}
	if last == nil {
		return
	}
	o := &last.Saves.Missed
	p := of(r, mlattr.ProblemCheckpoint)
	p.Onset, p.Rank, p.Host, p.Excluded = o.Since, last.Name, last.Host, r.Excluded()
	p.Value, p.Usual, p.Unit, p.Count = o.Last.Seconds(), o.Usual.Seconds(), "s", int64(o.Count)
	p.Evidence = []string{
		fmt.Sprintf("%d steps and %s since the last checkpoint", o.Steps, o.Last.Round(time.Second)),
		fmt.Sprintf("usually after %d steps and %s", o.UsualSteps, o.Usual.Round(time.Second)),
	}
	p.Next = "See whether " + nameOf(r, last) + " can write to the checkpoints' storage."
	report(p)
}
