package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/flightrecorder"
)

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
	addMore(p, len(stopped)-len(p.Evidence), "%s have stopped", "more ranks", "more ranks")
	p.Evidence = append(p.Evidence, "the others take steps")
	p.Onset, p.Rank, p.Host = first.Alive, first.Name, first.Host
	p.Value = p.Usual - float64(len(stopped))
	p.Next = "See whether the process of " + nameOf(r, first) + " still runs, and whether its telemetry arrives."
}

// ncclEvidence adds what NCCL and dumps say about the ranks that the others wait for.
func ncclEvidence(p *problem.Problem, r *runs.Run) {
	for i := range r.Stuck[:min(len(r.Stuck), maxNamed)] {
		_, name := nameOfStuck(r, &r.Stuck[i])
		p.Evidence = append(p.Evidence, "NCCL: "+name+" "+r.Stuck[i].Reason())
	}
	addMore(p, len(r.Stuck)-maxNamed, "NCCL: %s more", "rank", "ranks")
	if r.Wait.At.Before(p.Onset) {
		return // of what was before
	}
	for _, sentence := range r.Wait.Sentences {
		p.Evidence = append(p.Evidence, flightrecorder.EvidencePrefix+sentence)
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
