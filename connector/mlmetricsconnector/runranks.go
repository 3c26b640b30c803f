package mlmetricsconnector

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxNamed limits the ranks, hosts and GPUs that evidence names.
	maxNamed = 4
	// pauseAgain is how many times its longest checkpoint or validation a run may be
	// silent, because it may be in another one.
	pauseAgain = 1.5
	// worksFor is how many times its patience a run may be silent whose GPUs work as
	// before.
	worksFor = 3
	// doubtFor is how many times its patience a rank may be silent whose host does
	// not report its GPUs: its telemetry may be cut off, as of a whole host.
	doubtFor = 6
)

// concludeMissing reports ranks that have stopped while the others go on, and
// ranks that have never sent.
func (v *runVerdict) concludeMissing(e *emission, facts *runFacts) {
	all, world := v.members()
	if v.some {
		world = 0 // the others send nothing, and are not missing
	}
	expected, sending := 0, 0
	for i := range all {
		if !all[i].Gone {
			expected++
			if !all[i].Silent {
				sending++
			}
		}
	}
	v.telemetry = math.NaN()
	if expected = max(expected, world); expected > 0 {
		v.telemetry = float64(sending) / float64(expected)
	}
	stopped, few := ranks.Stopped(all)
	for _, i := range stopped {
		v.ranks[i].missing = true
	}
	stopped = slices.DeleteFunc(stopped, func(i int) bool {
		rank := &v.ranks[i]
		switch read := facts.hosts[rank.host]; {
		case read && facts.released:
			return true
		case !few || !read:
			return sending == 0 || e.now.Sub(rank.alive) < doubtFor*rank.patience
		default:
			return v.works(rank, facts.gpus)
		}
	})
	p := problem.Problem{
		Kind: mlattr.ProblemRankMissing, GPUs: e.gpus, Telemetry: v.telemetry,
		Usual: float64(expected), Unit: "{rank}",
	}
	switch since, absent, lowest := v.absent(all, world, facts, e.now); {
	case len(stopped) > 0:
		v.describeStopped(&p, stopped)
	case absent > 0:
		p.Onset, p.Rank, p.Value = since, strconv.Itoa(lowest[0]), float64(expected-absent)
		p.Evidence = []string{fmt.Sprintf("%d of %d ranks have never sent: %s", absent, world, listed(lowest, strconv.Itoa))}
		p.Next = "Read the launcher's log of rank " + p.Rank + "."
	default:
		return
	}
	v.ncclEvidence(&p, facts.stuck)
	e.problem(p)
}

// members returns the ranks as the rules see them, and the number of ranks that the
// run should have, 0 if unknown.
func (v *runVerdict) members() (all []ranks.Rank, world int) {
	var newest time.Time
	for i := range v.ranks {
		if rank := &v.ranks[i]; rank.world > 0 && rank.alive.After(newest) {
			newest, world = rank.alive, rank.world
		}
	}
	all = make([]ranks.Rank, len(v.ranks))
	for i := range v.ranks {
		rank := &v.ranks[i]
		number, err := strconv.Atoi(rank.rank)
		if err != nil {
			number = -1
		}
		// The ranks of an earlier attempt, and those that a smaller world has no
		// longer, have left.
		rank.moved = rank.moved || number >= 0 && (rank.numbered && rank.number < v.number || world > 0 && number >= world)
		all[i] = ranks.Rank{
			Number: number, Alive: rank.alive, Stepped: rank.stepped,
			Silent: rank.state == rankStalled || rank.state == rankSilent, Patience: rank.patience,
			Gone: rank.moved || rank.state.over() || number < 0,
		}
	}
	return all, world
}

// works reports whether a silent rank works, so that only its telemetry is missing:
// its own GPU does, or as many of its host as the run has ranks there.
func (v *runVerdict) works(rank *rankReport, of []gpus.State) bool {
	busy, there := 0, 0
	for i := range of {
		if of[i].Host != rank.host {
			continue
		}
		is := of[i].Activity() == gpus.Works
		if of[i].Rank == rank.rank {
			return is
		}
		if is {
			busy++
		}
	}
	for i := range v.ranks {
		if other := &v.ranks[i]; !other.moved && other.host == rank.host {
			there++
		}
	}
	return busy >= there
}

// absent returns the ranks that have never sent, once the run's first step is
// overdue and while the run sends.
func (v *runVerdict) absent(all []ranks.Rank, world int, facts *runFacts, now time.Time) (since time.Time, n int, lowest []int) {
	present := false
	for i := range v.ranks {
		rank := &v.ranks[i]
		if since.IsZero() || rank.since.Before(since) {
			since = rank.since
		}
		present = present || !all[i].Gone && (facts.held || rank.state == rankRunning)
	}
	if world < 2 || facts.firstStep <= 0 || now.Sub(since) <= facts.firstStep || !present {
		return since, 0, nil
	}
	n, lowest = ranks.Absent(all, world)
	return since, n, lowest
}

// describeStopped describes ranks that have stopped.
func (v *runVerdict) describeStopped(p *problem.Problem, stopped []int) {
	first := &v.ranks[stopped[0]]
	for _, i := range stopped {
		if v.ranks[i].alive.Before(first.alive) {
			first = &v.ranks[i]
		}
		if len(p.Evidence) < maxNamed {
			p.Evidence = append(p.Evidence, placeOf(&v.ranks[i])+" last sent at "+clockTime(v.ranks[i].alive)+lastPhase(&v.ranks[i]))
		}
	}
	if more := len(stopped) - len(p.Evidence); more > 0 {
		p.Evidence = append(p.Evidence, strconv.Itoa(more)+" more ranks have stopped")
	}
	p.Evidence = append(p.Evidence, "the others take steps")
	p.Onset, p.Rank, p.Host = first.alive, first.rank, first.host
	p.Value = p.Usual - float64(len(stopped))
	p.Next = "See whether the process of " + placeOf(first) + " still runs, and whether its telemetry arrives."
}

// concludeHang reports a run that takes no steps and holds GPUs, unless what its
// GPUs do contradicts it, or the run may be in a checkpoint or a validation.
func (v *runVerdict) concludeHang(e *emission, facts *runFacts) {
	if v.state != rankStalled {
		return
	}
	var patience, pause time.Duration
	stepped := false
	for i := range v.ranks {
		if rank := &v.ranks[i]; !rank.moved {
			patience, pause = max(patience, rank.patience), max(pause, rank.pause)
			stepped = stepped || !rank.stepped.IsZero()
		}
	}
	asOf := facts.asOf(e.now)
	silent := asOf.Sub(v.since)
	if !stepped {
		// The GPUs may have waited from the beginning, so that their highest power
		// says nothing.
		for i := range facts.gpus {
			facts.gpus[i].High = max(facts.gpus[i].High, facts.gpus[i].PowerLimit)
		}
	}
	counts := activities(facts.gpus)
	switch works := 2*counts[gpus.Works] > len(facts.gpus)-counts[gpus.ActivityUnknown]; {
	case works && (!stepped || min(silent, asOf.Sub(facts.heldSince)) < worksFor*patience):
		return
	case stepped && counts[gpus.Waits] == 0 && silent.Seconds() < pauseAgain*pause.Seconds():
		return
	}
	p := problem.Problem{
		Kind: mlattr.ProblemLooksHung, Onset: v.since, GPUs: e.gpus, Telemetry: v.telemetry,
		Value: e.now.Sub(v.since).Seconds(), Usual: math.NaN(), Unit: "s",
		Evidence: gpuEvidence(facts.gpus, counts),
		Next:     "See what each rank waits for: run py-spy dump with its process id.",
	}
	v.rankEvidence(&p, stepped)
	v.ncclEvidence(&p, facts.stuck)
	v.blame(&p, facts.stuck)
	if p.Host == "" {
		p.Host = facts.silentHost
	}
	if !facts.silent.IsZero() {
		p.Evident = facts.silent
		p.Evidence = append(p.Evidence, "its GPUs were last read at "+clockTime(facts.silent))
	}
	e.problem(p)
}

// concludeFailed reports ranks that have ended with an error, unless the others go on.
func (v *runVerdict) concludeFailed(e *emission) {
	if v.state == rankRunning {
		return
	}
	var failed []*rankReport
	for i := range v.ranks {
		if rank := &v.ranks[i]; rank.state == rankFailed && !rank.moved {
			failed = append(failed, rank)
		}
	}
	if len(failed) == 0 {
		return
	}
	slices.SortFunc(failed, func(a, b *rankReport) int { return cmp.Or(a.alive.Compare(b.alive), cmp.Compare(a.rank, b.rank)) })
	first := failed[0]
	p := problem.Problem{
		// An error that ended a program does not become old.
		Kind: mlattr.ProblemRunFailed, Onset: first.alive, Evident: e.now, Rank: first.rank, Host: first.host, GPUs: e.gpus,
		Value: float64(len(failed)), Usual: math.NaN(), Unit: "{rank}", Telemetry: v.telemetry,
		Next: "Read the error of " + placeOf(first) + ", which its log and the failures of its service have.",
	}
	for _, rank := range failed[:min(len(failed), maxNamed)] {
		in := ""
		if rank.failed != "" {
			in = " in " + rank.failed
		}
		p.Evidence = append(p.Evidence, placeOf(rank)+" ended with "+rank.failure+in+" at "+clockTime(rank.alive))
	}
	if more := len(failed) - len(p.Evidence); more > 0 {
		p.Evidence = append(p.Evidence, strconv.Itoa(more)+" more ranks have failed")
	}
	e.problem(p)
}

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
func (v *runVerdict) rankEvidence(p *problem.Problem, stepped bool) {
	var present []*rankReport
	var last []ranks.Last
	var saved time.Time
	for i := range v.ranks {
		rank := &v.ranks[i]
		if rank.saved.After(saved) {
			saved = rank.saved
		}
		if rank.moved || rank.state.over() {
			continue
		}
		present = append(present, rank)
		last = append(last, ranks.Last{What: phaseOf(rank), At: time.Unix(0, rank.lastEnd)})
	}
	if !stepped {
		p.Evidence = append(p.Evidence, quantity(len(present), "rank", "ranks")+", no step since "+clockTime(v.since))
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
			p.Rank, p.Host = rank.rank, rank.host
			p.Next = "See what " + placeOf(rank) + " does with py-spy dump: the others may wait for it."
		}
		if n < maxNamed {
			p.Evidence = append(p.Evidence, placeOf(rank)+" last finished "+last[i].What+" at "+clockTime(rank.alive))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(others)) {
		p.Evidence = append(p.Evidence, quantity(others[what], "rank", "ranks")+" last finished "+what)
	}
	if !saved.IsZero() {
		p.Evidence = append(p.Evidence, "last checkpoint at "+clockTime(saved))
	}
}

// phaseOf returns the phase of a rank's last span, or "".
func phaseOf(rank *rankReport) string {
	if rank.lastEnd == 0 || rank.latest == wallclock.NoPhase {
		return ""
	}
	return rank.latest.String()
}

// lastPhase returns what a rank finished last as part of a phrase, or "".
func lastPhase(rank *rankReport) string {
	if phase := phaseOf(rank); phase != "" {
		return ", after " + phase
	}
	return ""
}

// placeOf names a rank with its host.
func placeOf(rank *rankReport) string {
	name := "rank " + rank.rank
	if rank.rank == "" {
		name = "the process"
	}
	if rank.host == "" {
		return name
	}
	return name + " (" + rank.host + ")"
}

// clockTime returns a time of day.
func clockTime(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// quantity returns a number with a noun.
func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// listed returns the first values as text.
func listed[T any](all []T, text func(T) string) string {
	names := make([]string, 0, maxNamed+1)
	for _, one := range all[:min(len(all), maxNamed)] {
		names = append(names, text(one))
	}
	if len(all) > maxNamed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
