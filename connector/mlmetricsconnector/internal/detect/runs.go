package detect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/loss"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
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
	p.Onset = shared.Earlier(p.Onset, s.Now) // by a clock that is ahead
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
	var first *gpus.State
	for _, g := range r.GPUs.All {
		if g.Grows && (first == nil || g.Memory.Left < first.Memory.Left) {
			first = g
		}
	}
	if first == nil {
		return
	}
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

// doubtFor is how many times its patience a rank may be silent whose host does
// not report its GPUs: its telemetry may be cut off, as of a whole host. So is one that
// still holds its GPU: it may have come to its end before the others.
const doubtFor = 6

// missing reports ranks that have stopped while the others go on, and ranks that have
// never sent.
func missing(s *State, r *runs.Run, report func(problem.Problem)) {
	m := &r.Members
	stopped := slices.DeleteFunc(slices.Clone(m.Stopped), func(i int) bool {
		rank := r.Ranks[i]
		read := s.GPUs.Hosts[rank.Host].Read
		// If only a few go on, the run ends, and they are the last ones.
		if read && (r.GPUs.Released || !m.Few || works(r, rank)) {
			return true
		}
		return (!read || holds(r, rank)) && (m.Sending == 0 || s.Now.Sub(rank.Alive) < doubtFor*rank.Patience)
	})
	since, absent, lowest := neverSent(s, r)
	if len(stopped) == 0 && absent == 0 {
		return
	}
	p := of(r, mlattr.ProblemRankMissing)
	p.Usual, p.Unit = float64(m.Expected), "{rank}"
	if len(stopped) > 0 {
		describeStopped(&p, r, stopped)
	} else {
		p.Onset, p.Rank, p.Value = since, strconv.Itoa(lowest[0]), float64(m.Expected-absent)
		p.Evidence = []string{fmt.Sprintf("%d of %d ranks have never sent: %s", absent, m.World, listed(lowest))}
		p.Next = "Read the launcher's log of rank " + p.Rank + "."
	}
	ncclEvidence(&p, r)
	report(p)
}

// works reports whether a silent rank works, so that only its telemetry is missing:
// its own GPU does, or as many of its host as the run has ranks there.
func works(r *runs.Run, rank *runs.Rank) bool {
	busy, there := 0, 0
	for _, g := range r.GPUs.All {
		if g.Host != rank.Host {
			continue
		}
		is := g.Activity() == gpus.Works
		if g.Rank == rank.Name {
			return is
		} else if is {
			busy++
		}
	}
	for other := range present(r) {
		if other.Host == rank.Host {
			there++
		}
	}
	return busy >= there
}

// holds reports whether a rank still holds a GPU of its own.
func holds(r *runs.Run, rank *runs.Rank) bool {
	return slices.ContainsFunc(r.GPUs.All, func(g *gpus.State) bool { return g.Host == rank.Host && g.Rank == rank.Name })
}

// neverSent returns the ranks that have never sent, once the run's first step is
// overdue and while the run sends.
func neverSent(s *State, r *runs.Run) (since time.Time, n int, lowest []int) {
	present := false
	for i, rank := range r.Ranks {
		since = shared.Earlier(since, rank.Since)
		present = present || !r.Members.All[i].Gone && (r.GPUs.Now || rank.State == runs.Running)
	}
	if r.Members.World < 2 || s.Limits.FirstStep <= 0 || s.Now.Sub(since) <= s.Limits.FirstStep || !present {
		return since, 0, nil
	}
	n, lowest = ranks.Absent(r.Members.All, r.Members.World)
	return since, n, lowest
}

// describeStopped describes ranks that have stopped.
func describeStopped(p *problem.Problem, r *runs.Run, stopped []int) {
	first := r.Ranks[stopped[0]]
	for _, i := range stopped {
		rank := r.Ranks[i]
		if rank.Alive.Before(first.Alive) {
			first = rank
		}
		if len(p.Evidence) < maxNamed {
			text := nameOf(r, rank) + " last sent at " + clock(rank.Alive)
			if phase := rank.Phase(); phase != "" {
				text += ", after " + phase
			}
			p.Evidence = append(p.Evidence, text)
		}
	}
	if more := len(stopped) - len(p.Evidence); more > 0 {
		p.Evidence = append(p.Evidence, strconv.Itoa(more)+" more ranks have stopped")
	}
	p.Evidence = append(p.Evidence, "the others take steps")
	p.Onset, p.Rank, p.Host = first.Alive, first.Name, first.Host
	p.Value = p.Usual - float64(len(stopped))
	p.Next = "See whether the process of " + nameOf(r, first) + " still runs, and whether its telemetry arrives."
}

// ncclEvidence adds what NCCL says about the ranks that the others wait for.
func ncclEvidence(p *problem.Problem, r *runs.Run) {
	for i := range r.Stuck[:min(len(r.Stuck), maxNamed)] {
		_, name := nameOfStuck(r, &r.Stuck[i])
		p.Evidence = append(p.Evidence, "NCCL: "+name+" "+r.Stuck[i].Reason())
	}
	if more := len(r.Stuck) - maxNamed; more > 0 {
		p.Evidence = append(p.Evidence, fmt.Sprintf("NCCL: %s more", quantity(more, "rank", "ranks")))
	}
}

// nameOfStuck returns a rank, nil if nothing else is known of it, and names it with its host,
// else with the address that NCCL knows.
func nameOfStuck(r *runs.Run, stuck *ranks.Stuck) (of *runs.Rank, name string) {
	host := stuck.Address
	for rank := range present(r) {
		if rank.Name == stuck.Number {
			of, host = rank, cmp.Or(rank.Host, stuck.Address)
		}
	}
	return of, rankOn(stuck.Number, host)
}

// losses reports what the losses of runs that take steps show: one that is NaN or infinite,
// has risen for a moment, has risen and stays there, or does not change any more.
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
			{mlattr.ProblemNonfinite, l.Nonfinite, "{loss}", l.Broken, "%[1]v of the newest %[3]d losses are NaN or infinite"},
		} {
			f := is.found
			if f == nil {
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
