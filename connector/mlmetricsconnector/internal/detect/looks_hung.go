package detect

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func init() {
	addPlain(mlattr.ProblemLooksHung, eachRun(hung),
		mlattr.ProblemGPUFailed, mlattr.ProblemHostSilent, mlattr.ProblemRunFailed, mlattr.ProblemRankMissing)
}

const (
	// pauseAgain is how many times its longest checkpoint or validation a run may be
	// silent, because it may be in another one.
	pauseAgain = 1.5
	// worksFor is how many times its patience a run may be silent whose GPUs work as
	// before.
	worksFor = 3
)

// hung reports a run that takes no steps and holds GPUs, unless what its GPUs do
// contradicts it, or the run may be in a checkpoint or a validation.
func hung(s *State, r *runs.Run, report func(problem.Problem)) {
	if r.State != runs.Stalled {
		return
	}
	var patience, pause time.Duration
	stepped := false
	for i := range r.Ranks {
		if rank := &r.Ranks[i]; !rank.Moved {
			patience, pause = max(patience, rank.Patience), max(pause, rank.Pause)
			stepped = stepped || !rank.Last.Stepped.IsZero()
		}
	}
	asOf := r.GPUs.AsOf(s.Now)
	silent := asOf.Sub(r.Since)
	all := slices.Clone(r.GPUs.All)
	if !stepped {
		// The GPUs may have waited from the beginning, so that their highest power
		// says nothing.
		for i := range all {
			all[i].High = max(all[i].High, all[i].PowerLimit)
		}
	}
	counts := activities(all)
	switch works := 2*counts[gpus.Works] > len(all)-counts[gpus.ActivityUnknown]; {
	case works && (!stepped || min(silent, asOf.Sub(r.GPUs.Since)) < worksFor*patience):
		return
	case stepped && counts[gpus.Waits] == 0 && silent.Seconds() < pauseAgain*pause.Seconds():
		return
	}
	p := of(r, mlattr.ProblemLooksHung)
	p.Onset, p.Value, p.Unit = r.Since, s.Now.Sub(r.Since).Seconds(), "s"
	p.Evidence = gpuEvidence(all, counts)
	p.Next = "See what each rank waits for: run py-spy dump with its process id."
	rankEvidence(&p, r, stepped)
	ncclEvidence(&p, r)
	blame(&p, r)
	if p.Host == "" {
		p.Host = r.GPUs.Host
	}
	if !r.GPUs.Silent.IsZero() {
		p.Evident = r.GPUs.Silent
		p.Evidence = append(p.Evidence, lastRead(r))
	}
	report(p)
}

// lastRead says when the GPUs of a run were last read.
func lastRead(r *runs.Run) string { return "its GPUs were last read at " + clock(r.GPUs.Silent) }

// activities counts GPUs by what they do.
func activities(of []gpus.State) (counts [gpus.Works + 1]int) {
	for i := range of {
		counts[of[i].Activity()]++
	}
	return counts
}

// gpuEvidence says what the GPUs of a stalled run do.
func gpuEvidence(of []gpus.State, counts [gpus.Works + 1]int) (evidence []string) {
	if waits := counts[gpus.Waits]; waits > 0 {
		var power, high float64
		for i := range of {
			if of[i].Activity() == gpus.Waits {
				power, high = power+of[i].Power, high+of[i].High
			}
		}
		evidence = append(evidence, fmt.Sprintf("confirmed by %s that are busy at %.0f W, up to %.0f W before: they wait for another GPU",
			quantity(waits, "GPU", "GPUs"), power/float64(waits), high/float64(waits)))
	}
	if idle := counts[gpus.DoesNothing]; idle > 0 {
		evidence = append(evidence, "confirmed by "+quantity(idle, "GPU", "GPUs")+" at 0 %")
	}
	if works := counts[gpus.Works]; works > 0 {
		evidence = append(evidence, "not confirmed by "+quantity(works, "GPU", "GPUs")+" that are busy")
	}
	if len(evidence) == 0 {
		evidence = append(evidence, "not confirmed: the utilization of the GPUs is unknown")
	}
	return evidence
}

// rankEvidence says when the ranks stopped, and which of them did something else
// last.
func rankEvidence(p *problem.Problem, r *runs.Run, stepped bool) {
	var present []*runs.Rank
	var last []ranks.Last
	var saved time.Time
	for i := range r.Ranks {
		rank := &r.Ranks[i]
		if rank.Saves.Last.After(saved) {
			saved = rank.Saves.Last
		}
		if rank.Moved || rank.State.Over() {
			continue
		}
		present = append(present, rank)
		last = append(last, ranks.Last{What: rank.Phase(), At: time.Unix(0, rank.Last.End)})
	}
	if !stepped {
		p.Evidence = append(p.Evidence, quantity(len(present), "rank", "ranks")+", no step since "+clock(r.Since))
	}
	apart := ranks.Apart(last)
	others := make(map[string]int)
	for i := range last {
		if last[i].What != "" && !slices.Contains(apart, i) {
			others[last[i].What]++
		}
	}
	for n, i := range apart {
		rank := present[i]
		if n == 0 {
			p.Rank, p.Host = rank.Name, rank.Host
			p.Next = "See what " + nameOf(rank) + " does with py-spy dump: the others may wait for it."
		}
		if n < maxNamed {
			p.Evidence = append(p.Evidence, nameOf(rank)+" last finished "+last[i].What+" at "+clock(rank.Alive))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(others)) {
		p.Evidence = append(p.Evidence, quantity(others[what], "rank", "ranks")+" last finished "+what)
	}
	if !saved.IsZero() {
		p.Evidence = append(p.Evidence, "last checkpoint at "+clock(saved))
	}
}

// blame makes the first of the ranks that the others wait for the place of a hang.
func blame(p *problem.Problem, r *runs.Run) {
	if len(r.Stuck) == 0 {
		return
	}
	host, name := nameOfStuck(r, &r.Stuck[0])
	p.Rank, p.Host = r.Stuck[0].Number, host
	if p.Next = "See whether the process of " + name + " still runs: the others wait for it."; r.Stuck[0].Behind() {
		p.Next = "See what " + name + " does with py-spy dump: the others wait for it."
	}
}
