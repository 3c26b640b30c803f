package detect

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// failed reports ranks that have ended with an error, unless the others go on.
func failed(s *State, r *runs.Run, report func(problem.Problem)) {
	if r.State == runs.Running {
		return
	}
	var failed []*runs.Rank
	for rank := range present(r) {
		if rank.State == runs.Failed {
			failed = append(failed, rank)
		}
	}
	if len(failed) == 0 {
		return
	}
	slices.SortFunc(failed, func(a, b *runs.Rank) int { return cmp.Or(a.Alive.Compare(b.Alive), cmp.Compare(a.Name, b.Name)) })
	first := failed[0]
	p := of(r, mlattr.ProblemRunFailed)
	p.Onset, p.Rank, p.Host = first.Alive, first.Name, first.Host
	// An error that ended a program does not become old.
	p.Evident, p.Interval = s.Now, 0
	p.Value, p.Unit = float64(len(failed)), "{rank}"
	p.Next = "Read the error of " + nameOf(r, first) + ", which its log and the failures of its service have."
	for _, rank := range failed[:min(len(failed), maxNamed)] {
		in := ""
		if rank.Failure.Operation != "" {
			in = " in " + rank.Failure.Operation
		}
		p.Evidence = append(p.Evidence, nameOf(r, rank)+" ended with "+rank.Failure.Class+in+" at "+clock(rank.Alive))
	}
	if more := len(failed) - len(p.Evidence); more > 0 {
		p.Evidence = append(p.Evidence, strconv.Itoa(more)+" more ranks have failed")
	}
	report(p)
}
