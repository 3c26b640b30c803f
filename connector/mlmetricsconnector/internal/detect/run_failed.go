package detect

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// failed reports the runs of which ranks have ended with an error, unless the others go on.
// A run has one failure: a service whose ranks take no steps, as the launchers of the other
// nodes, is part of the run with the same id that takes some.
func failed(s *State, report func(problem.Problem)) {
	type id struct{ namespace, run string }
	steps := make(map[id]*runs.Run)
	for _, r := range s.Runs {
		if n, _ := r.LastStep(); n > 0 {
			steps[id{r.Key.Resource.Namespace, r.Key.ID}] = r
		}
	}
	ended := make(map[*runs.Run][]*runs.Rank)
	for _, r := range s.Runs {
		to := r
		if n, _ := r.LastStep(); n == 0 {
			to = cmp.Or(steps[id{r.Key.Resource.Namespace, r.Key.ID}], r)
		}
		if r.State == runs.Running || to.State == runs.Running {
			continue
		}
		for rank := range present(r) {
			if rank.State == runs.Failed {
				ended[to] = append(ended[to], rank)
			}
		}
	}
	for r, ranks := range ended {
		report(failure(s, r, ranks))
	}
}

// failure returns the failure of a run. Its cause is the rank that has failed first by the
// clocks of the hosts, but none that was stopped because of another one.
func failure(s *State, r *runs.Run, failed []*runs.Rank) problem.Problem {
	after := func(rank *runs.Rank) int {
		if mlattr.EndedByAnother(rank.Failure.Class, rank.Failure.Message) {
			return 1
		}
		return 0
	}
	slices.SortFunc(failed, func(a, b *runs.Rank) int {
		return cmp.Or(after(a)-after(b), a.Failure.At.Compare(b.Failure.At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host))
	})
	first := failed[0]
	p := of(r, mlattr.ProblemRunFailed)
	p.Onset, p.Rank, p.Host = first.Failure.At, first.Name, first.Host
	p.Class, p.Message = first.Failure.Class, first.Failure.Message
	if p.Onset.After(s.Now) {
		p.Onset = s.Now // by a clock that is ahead
	}
	// An error that ended a program does not become old.
	p.Evident, p.Interval = s.Now, 0
	p.Value, p.Unit = float64(len(failed)), "{rank}"
	p.Next = "Read the error of " + nameOf(r, first) + ", which its log and the failures of its service have."
	for i, rank := range failed[:min(len(failed), maxNamed)] {
		ended := " ended with "
		if i > 0 {
			ended = " followed with "
		}
		in := ""
		if rank.Failure.Operation != "" {
			in = " in " + rank.Failure.Operation
		}
		p.Evidence = append(p.Evidence, nameOf(r, rank)+ended+rank.Failure.Class+in+" at "+clock(rank.Failure.At))
	}
	if more := len(failed) - len(p.Evidence); more > 0 {
		p.Evidence = append(p.Evidence, strconv.Itoa(more)+" more ranks have failed")
	}
	return p
}
