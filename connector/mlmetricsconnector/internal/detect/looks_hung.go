package detect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// pauseAgain is how many times its longest checkpoint, validation or silence a run
	// may be silent, because it may be in another one.
	pauseAgain = 1.5
	// unsureFor is how many times its patience a run may be silent whose GPUs do not show
	// that they wait for each other, as in a checkpoint or an evaluation without spans, and
	// worksFor the same of one whose GPUs work or of which a rank sends.
	unsureFor, worksFor = 5, 12
	// oftenAgain is how many times its longest silence a run may be silent that was so
	// often times or more, if its GPUs do not show a wait.
	oftenAgain, often = 3, 3
)

// hung reports a run that takes no steps and holds GPUs, unless what its GPUs do
// contradicts it, or the run may be in a pause as it has made before. A pause looks like
// a hang; the first one of a run is one only if its GPUs, or NCCL, show a wait.
func hung(s *State, r *runs.Run, report func(problem.Problem)) {
	if r.State != runs.Stalled {
		return
	}
	var patience, pause, quiet time.Duration
	stepped, sends, interactive := false, false, false
	var back time.Time
	pauses := 0
	for rank := range present(r) {
		patience, pause, quiet = max(patience, rank.Patience), max(pause, rank.Pause), max(quiet, rank.Silences.Usual())
		stepped = stepped || !rank.Last.Stepped.IsZero()
		sends = sends || rank.State == runs.Running
		pauses = max(pauses, rank.Silences.Number)
		back = shared.Later(back, s.GPUs.Hosts[rank.Host].Back) // what it sent before is lost
		interactive = interactive || rank.Silences.Irregular() || len(r.Ranks) == 1 && rank.Silences.Often(r.Seen.Sub(rank.Since))
	}
	asOf := cmp.Or(r.GPUs.Silent, s.Now) // until when something is known of the GPUs
	silent := asOf.Sub(r.Since)
	all := mlattr.Mapped(r.GPUs.All, func(g *gpus.State) *gpus.State {
		is := *g
		if !stepped {
			// It may have waited from the beginning, so that its highest power says nothing.
			is.High = max(is.High, is.PowerLimit)
		}
		return &is
	})
	counts, spinning, strained := activities(all, asOf.Add(-patience/2))
	if stepped {
		known := len(all) - counts[gpus.ActivityUnknown]
		works := 2*strained > known
		suspected, limit := suspect(s, r), time.Duration(unsureFor)*patience
		switch {
		case len(all) == 0 && !r.GPUs.Since.IsZero():
			return // it is releasing its GPUs
		case known == 0, !works && (suspected || !sends && spinning > 0 && 2*(spinning+counts[gpus.DoesNothing]) > known):
			limit = 0
		case (sends || works) && !suspected:
			limit = worksFor * patience
		case interactive && counts[gpus.DoesNothing] == known:
			return // somebody decides when it goes on, as in a notebook
		}
		excused := max(pauseAgain*quiet.Seconds(), limit.Seconds())
		if limit > 0 && pauses >= often {
			excused = max(excused, oftenAgain*quiet.Seconds())
		}
		if counts[gpus.Waits] == 0 {
			excused = max(excused, pauseAgain*pause.Seconds())
		}
		if min(silent, asOf.Sub(r.GPUs.Since), asOf.Sub(back)).Seconds() < excused {
			return
		}
	} else if 2*counts[gpus.Works] > len(all)-counts[gpus.ActivityUnknown] {
		return
	}
	p := of(r, mlattr.ProblemLooksHung)
	p.Onset, p.Value, p.Unit = r.Since, s.Now.Sub(r.Since).Seconds(), "s"
	rank, apart := rankEvidence(&p, r, stepped)
	p.Evidence = append(p.Evidence, gpuEvidence(all, counts)...)
	ncclEvidence(&p, r)
	faultEvidence(&p, s, r)
	inspect(&p, r, rank, apart)
	blame(&p, r)
	p.Host = cmp.Or(p.Host, r.GPUs.Host)
	if !r.GPUs.Silent.IsZero() {
		p.Evident = r.GPUs.Silent
		p.Evidence = append(p.Evidence, lastRead(r))
	}
	report(p)
}

// lastRead says when the GPUs of a run were last read.
func lastRead(r *runs.Run) string { return "its GPUs were last read at " + clock(r.GPUs.Silent) }

// suspect reports whether something else of the run says that it does not go on: NCCL, a
// rank that is missing, has failed or did something else last, a GPU that has failed, or
// a host that is silent.
func suspect(s *State, r *runs.Run) bool {
	var last []ranks.Last
	sends := false
	for _, rank := range r.Ranks {
		if silent := s.GPUs.Hosts[rank.Host].Silent != nil; rank.Missing || !rank.Moved && (silent || rank.State == runs.Failed) {
			return true
		}
		sends = sends || rank.State == runs.Running // the others may wait until it has written the result
		if !rank.Moved && !rank.State.Over() {
			last = append(last, ranks.Last{What: rank.Phase()})
		}
	}
	return s.GPUs.Hit[r.Key.ID] || r.Waits() || !sends && len(ranks.Apart(last)) > 0
}

// activities counts GPUs by what they do, those that spin in a collective, and those that
// have worked since a time.
func activities(of []*gpus.State, since time.Time) (counts [gpus.Works + 1]int, spinning, worked int) {
	for _, g := range of {
		if counts[g.Activity()]++; g.Worked.After(since) {
			worked++
		} else if g.Spins() {
			spinning++
		}
	}
	return counts, spinning, worked
}

// gpuEvidence says what the GPUs of a stalled run do.
func gpuEvidence(of []*gpus.State, counts [gpus.Works + 1]int) (evidence []string) {
	var use, power, high [len(counts)]float64
	for _, g := range of {
		does := g.Activity()
		use[does], power[does], high[does] = use[does]+g.Utilization, power[does]+g.Power, high[does]+g.High
	}
	for _, is := range [...]struct {
		does            gpus.Activity
		confirmed, busy string
	}{{gpus.Waits, "confirmed", " that are busy"}, {gpus.DoesNothing, "confirmed", ""}, {gpus.Works, "not confirmed", " that are busy"}} {
		n := float64(counts[is.does])
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%s by %s%s at %.0f %%", is.confirmed, quantity(counts[is.does], "GPU", "GPUs"), is.busy, 100*use[is.does]/n)
		if power[is.does] > 0 {
			text += fmt.Sprintf(" and %.0f W", power[is.does]/n)
		}
		if is.does == gpus.Waits {
			text += fmt.Sprintf(", up to %.0f W before: they wait for another GPU", high[is.does]/n)
		}
		evidence = append(evidence, text)
	}
	if len(evidence) == 0 {
		evidence = append(evidence, "not confirmed: the utilization of the GPUs is unknown")
	}
	return evidence
}

// rankEvidence says when the ranks stopped, and which of them did something else
// last. It returns the first of these, else the first rank, and whether it is apart.
func rankEvidence(p *problem.Problem, r *runs.Run, stepped bool) (first *runs.Rank, isApart bool) {
	var all []*runs.Rank
	var last []ranks.Last
	var saved time.Time
	for _, rank := range r.Ranks {
		saved = shared.Later(saved, rank.Saves.Last)
		if rank.Moved || rank.State.Over() {
			continue
		}
		all = append(all, rank)
		last = append(last, ranks.Last{What: rank.Phase(), At: time.Unix(0, rank.Last.End)})
	}
	if steps, at := r.LastStep(); steps > 0 {
		p.Evidence = append(p.Evidence, fmt.Sprintf("last step %d at %s", steps, clock(at)))
	}
	if !stepped {
		p.Evidence = append(p.Evidence, quantity(len(all), "rank", "ranks")+", no step since "+clock(r.Since))
	}
	if len(all) > 0 {
		first = slices.MinFunc(all, func(a, b *runs.Rank) int {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host))
		})
	}
	apart := ranks.Apart(last)
	others := make(map[string]int)
	for i, did := range last {
		if did.What != "" && !slices.Contains(apart, i) {
			others[did.What]++
		}
	}
	if len(apart) > 0 {
		first, isApart = all[apart[0]], true
		p.Rank, p.Host = first.Name, first.Host
	}
	for _, i := range apart[:min(len(apart), maxNamed)] {
		p.Evidence = append(p.Evidence, nameOf(r, all[i])+" last finished "+last[i].What+" at "+clock(all[i].Alive))
	}
	addMore(p, len(apart)-maxNamed, "and %s more", "rank", "ranks")
	for _, what := range slices.Sorted(maps.Keys(others)) {
		p.Evidence = append(p.Evidence, quantity(others[what], "rank", "ranks")+" last finished "+what)
	}
	if !saved.IsZero() {
		p.Evidence = append(p.Evidence, "last checkpoint at "+clock(saved))
	}
	return first, isApart
}

// inspect says which process of a run that hangs to look at first, and on which host.
func inspect(p *problem.Problem, r *runs.Run, rank *runs.Rank, apart bool) {
	if rank == nil {
		p.Next = "See what each process waits for: run py-spy dump with its process id."
		return
	}
	switch {
	case apart:
		p.Next = "See what " + nameOf(r, rank) + " does: the others may wait for it. "
	case len(r.Ranks) > 1:
		p.Next = "See what each rank waits for, for example " + nameOf(r, rank) + ". "
	default:
		p.Next = "See what the process waits for. "
	}
	lookAt(p, r, rank)
	if on := cmp.Or(rank.Host, "its host"); p.PID > 0 {
		p.Next += fmt.Sprintf("Run py-spy dump with its process id %d on %s.", p.PID, on)
	} else {
		p.Next += "Find its process id on " + on + ", then run py-spy dump with it."
	}
}

// lookAt sets the process of a rank: the one that its host knows, else the one that the
// process itself states.
func lookAt(p *problem.Problem, r *runs.Run, rank *runs.Rank) {
	p.PID, p.GPUIndex = rank.Program.PID, ""
	if g := gpuOf(r, rank); g != nil {
		p.PID, p.GPUIndex = cmp.Or(g.PID, p.PID), g.Index
	}
}

// blame makes the first of the ranks that the others wait for the place of a hang.
func blame(p *problem.Problem, r *runs.Run) {
	if !r.Waits() {
		return
	}
	first := &r.Wait.Stuck
	if len(r.Stuck) > 0 {
		first = &r.Stuck[0]
	}
	rank, name := nameOfStuck(r, first)
	p.Rank, p.Host, p.PID, p.GPUIndex = first.Number, "", 0, ""
	if rank != nil {
		p.Host = rank.Host
		lookAt(p, r, rank)
	}
	if p.Next = "See whether the process of " + name + " still runs: the others wait for it."; first.Behind() {
		p.Next = "See what " + name + " does with py-spy dump: the others wait for it."
	}
}
