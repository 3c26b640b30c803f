package detect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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
		return shared.OneIf[int](mlattr.EndedByAnother(rank.Failure.Class, rank.Failure.Message))
	}
	slices.SortFunc(failed, func(a, b *runs.Rank) int {
		return cmp.Or(after(a)-after(b), a.Failure.At.Compare(b.Failure.At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host))
	})
	first := failed[0]
	p := of(r, mlattr.ProblemRunFailed)
	p.Onset, p.Rank, p.Host = shared.Earlier(first.Failure.At, s.Now), first.Name, first.Host // by a clock that may be ahead
	p.Class, p.Message = first.Failure.Class, first.Failure.Message
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
	addMore(&p, len(failed)-len(p.Evidence), "%s have failed", "more ranks", "more ranks")
	return p
}

// loopTime is the time within which runs.LoopOf new attempts make a restart loop.
const loopTime = time.Hour

// restarts reports a run that begins again and again.
func restarts(s *State, r *runs.Run, report func(problem.Problem)) {
	since, loops := r.Loops(loopTime, s.Now)
	if !loops || r.State.Over() {
		return
	}
	p := of(r, mlattr.ProblemRestartLoop)
	p.Onset, p.Value, p.Unit, p.Telemetry = since, float64(r.Attempts()), "{attempt}", math.NaN()
	p.Evidence = []string{fmt.Sprintf("attempt %d", r.Attempts())}
	if steps, _ := r.LastStep(); steps > 0 {
		p.Evidence = append(p.Evidence, fmt.Sprintf("step %d", steps))
	}
	report(p)
}

// silent reports a run that is silent and holds GPUs of which nothing is known
// any more, not before their host, which it may follow from.
func silent(s *State, r *runs.Run, report func(problem.Problem)) {
	held := &r.GPUs.Held
	if r.State != runs.Silent || held.Silent.IsZero() || s.Now.Sub(held.Silent) <= s.Limits.Stall || s.Now.Sub(s.GPUs.Hosts[held.Host].Heard) <= s.Limits.Stall {
		return
	}
	p := of(r, mlattr.ProblemRunSilent)
	p.Onset, p.Value, p.Unit = r.Since, s.Now.Sub(r.Since).Seconds(), "s"
	p.Evidence = []string{lastRead(r)}
	rankEvidence(&p, r, true)
	p.Rank, p.Host = "", held.Host
	report(p)
}

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

// grows reports the GPU of a run whose memory reaches its limit first.
func grows(_ *State, r *runs.Run, report func(problem.Problem)) {
	if r.State != runs.Running || !r.GPUs.Silent.IsZero() {
		return
	}
	growing := mlattr.Where(slices.Values(r.GPUs.All), func(g *gpus.State) bool { return g.Grows })
	if len(growing) == 0 {
		return
	}
	first := slices.MinFunc(growing, func(a, b *gpus.State) int { return cmp.Compare(a.Memory.Left, b.Memory.Left) })
	f := &first.Memory
	p := of(r, mlattr.ProblemMemoryGrowth)
	p.Onset, p.Rank, p.Host, p.GPU = f.Since, first.Rank, first.Host, first.ID
	p.Value, p.Usual, p.Unit, p.Window, p.Count = f.To, f.From, "By", f.Window, int64(f.Count)
	p.Evidence = []string{
		fmt.Sprintf("GPU memory grows by %s an hour", gib(f.PerHour)),
		fmt.Sprintf("%s of %s are used: full in %s", gib(f.To), gib(first.Limit), f.Left.Round(time.Minute)),
	}
	report(p)
}
