package detect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// notSlow is how many times the usual time a run takes at which it is slow no longer. It
// is slow from pace.Slower times on.
const notSlow = 1.2

// slow finds runs whose steps have taken longer than usual for stall_timeout: by a third
// or more, or by a few hundredths where they vary less. Then 400 steps suffice. And those
// that some of their ranks keep waiting, from the beginning too, or the ranks of a host in
// some steps.
type slow struct{ known map[streams.RunKey]slowness }

// slowness is since when a run is slow, and whether this is a problem.
type slowness struct {
	since    time.Time
	reported bool
	// behind is since when ranks compute longer than the others, as was seen at seen.
	behind, seen time.Time
}

// detect reports the slow runs.
func (d *slow) detect(s *State, report func(problem.Problem)) {
	was := d.known
	d.known = make(map[streams.RunKey]slowness)
	for _, r := range s.Runs {
		is := was[r.Key]
		b := is.settle(s, r)
		d.known[r.Key] = is
		times := &r.Steps.Times
		if is.reported {
			report(describeSlow(s, r, &b, is.since, usually, times.Usual, times.Recent))
		} else if shift := &r.Steps.Shift; shift.Lasts(s.Limits.Stall) {
			report(describeSlow(s, r, &b, r.Seen.Add(-shift.Lasted), usually, shift.Usual, shift.Now))
		} else if drift := &r.Steps.Drift; drift.Steps > 0 {
			report(describeSlow(s, r, &b, r.Seen.Add(-drift.Lasted), usually, drift.Usual, drift.Now))
		} else if !is.seen.IsZero() && s.Now.Sub(is.seen) >= s.Limits.Stall {
			report(describeSlow(s, r, &b, is.behind, "%.3g s a step, %.3g if all ranks computed the same (%+.0f %%)", b.step-(b.most-b.mean), b.step))
		} else {
			oftenLong(s, r, &b, report)
		}
	}
}

// settle determines whether the run is slow. Once it has been for stall_timeout, the
// newest steps must be slow too, once: the median of 20 stays high for up to 10 steps
// after others have used the storage or the network for a short time. It returns the ranks
// for which the others wait.
func (is *slowness) settle(s *State, r *runs.Run) behind {
	times := &r.Steps.Times
	switch {
	case r.Steps.Longer.IsZero(), times.Recent <= notSlow*times.Usual:
		is.since = time.Time{}
	case is.since.IsZero() && times.Recent > pace.Slower*times.Usual:
		is.since = r.LongerSince(pace.Slower)
	}
	is.reported = !is.since.IsZero() &&
		(is.reported || s.Now.Sub(is.since) >= s.Limits.Stall && times.Newest > pace.Slower*times.Usual)
	b := ranksBehind(r)
	if r.State != runs.Running || len(b.ranks) == 0 || b.most-b.mean < straggles*b.step {
		is.behind, is.seen = time.Time{}, time.Time{}
	} else if is.seen.IsZero() {
		is.behind, is.seen = r.Seen.Add(-time.Duration(b.since*float64(time.Second))), s.Now
	}
	return b
}

// usually says how long a step takes, and how long before.
const usually = "%.3g s a step, usually %.3g (%+.0f %%)"

// describeSlow describes a run whose steps take so many seconds instead of the usual, as
// the form says, and the ranks for which the others wait.
func describeSlow(s *State, r *runs.Run, b *behind, since time.Time, form string, usual, now float64) problem.Problem {
	p := of(r, mlattr.ProblemSlow)
	p.Onset, p.Value, p.Usual, p.Unit, p.Count = since, now, usual, "s", pace.RecentSteps
	p.Window = time.Duration(now * pace.RecentSteps * float64(time.Second))
	p.Excluded = r.Excluded()
	p.GPUs *= 1 - usual/now // what they do longer
	p.Evidence = append(p.Evidence, fmt.Sprintf(form, now, usual, 100*(now/usual-1)))
	phaseEvidence(&p, r)
	slowRanks(&p, r, b)
	var reasons []string
	for _, g := range r.GPUs.All {
		reasons = append(reasons, g.Throttled...)
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		p.Evidence = append(p.Evidence, "clocks are lowered: "+listed(slices.Compact(reasons)))
	}
	faultEvidence(&p, s, r)
	return p
}

const (
	// standsOut is the least share of a step that a slow rank computes longer than the
	// others, and straggles that of a run that is slow for it: its steps take 1.1 times as
	// long as if all ranks computed the same (Lin et al., Understanding Stragglers in Large
	// Model Training Using What-if Analysis, 2025).
	standsOut, straggles = 0.05, 1 - 1/1.1
	// inStep is the largest part by which the steps of ranks differ that wait for each other.
	inStep = 0.05
)

// behind are ranks, at most a quarter, that compute longer than the others, which wait for
// them.
type behind struct {
	ranks []*runs.Rank
	// most is what the slowest of them computes in a step of so many seconds, others what
	// the others do, mean what all do, since so many seconds.
	most, others, mean, step, since float64
}

// ranksBehind returns the ranks that compute longer than the others.
func ranksBehind(r *runs.Run) (b behind) {
	for own := 2; own > 0; own-- {
		b = behind{}
		var all []*runs.Rank
		var seconds, steps []float64
		for rank := range present(r) {
			if takes := &rank.Own[own]; takes.Phase > 0 && !rank.Missing {
				all, seconds, steps = append(all, rank), append(seconds, takes.Phase), append(steps, takes.Step)
				b.since = takes.Since
				b.mean += takes.Phase
			}
		}
		if len(all) < 3 {
			continue
		}
		var spread float64
		b.others, spread = pace.Spread(slices.Clone(seconds))
		b.mean, b.step = b.mean/float64(len(all)), shared.Median(steps)
		for i, rank := range all {
			if seconds[i]-b.others >= max(standsOut*b.step, 6*spread) {
				b.ranks, b.most = append(b.ranks, rank), max(b.most, seconds[i])
			}
		}
		// Median has sorted the steps.
		if n := len(b.ranks); n > 0 && n <= max(1, len(all)/4) && steps[len(all)-1] <= (1+inStep)*steps[0] {
			return b
		}
	}
	return behind{}
}

// stage returns the stage of a pipeline that has all of the ranks and no other, or "".
func (b *behind) stage(r *runs.Run) string {
	stage := b.ranks[0].Program.Stage
	for rank := range present(r) {
		if slices.Contains(b.ranks, rank) != (rank.Program.Stage == stage) {
			return ""
		}
	}
	return stage
}

// slowRanks names the ranks that compute longer than the others.
func slowRanks(p *problem.Problem, r *runs.Run, b *behind) {
	if len(b.ranks) == 0 {
		return
	}
	first := b.ranks[0]
	p.Rank, p.Host = first.Name, first.Host
	names := nameOf(r, first)
	p.Next = "Look at the GPU, the processor and the input of " + names + "."
	if n := len(b.ranks); n > 1 {
		names += fmt.Sprintf(" and %s more", quantity(n-1, "rank", "ranks"))
	}
	if stage := b.stage(r); stage != "" {
		names += ", all of stage " + stage
		p.Next = "Look at how the model is divided: stage " + stage + " may have more of it than others."
	}
	p.Evidence = append(p.Evidence, fmt.Sprintf("%s: %.3g s of computing a step, the others %.3g: they wait for it", names, b.most, b.others))
}

// byChance is how often a host of a run is found by chance: once in a million windows of 640
// steps, by Fisher's exact test (1935), of all hosts together (Bonferroni).
const byChance = 1e-6

// oftenLong reports a run that is slow in the mean and whose ranks on one host have long steps
// in more groups than those on half of the other hosts. What all hosts wait for counts on none.
func oftenLong(s *State, r *runs.Run, b *behind, report func(problem.Problem)) {
	timed, usual, byHost := loads(r), r.Steps.Times.Usual, make(map[string][]float64)
	if len(timed) < 2 || timed[len(timed)-1].Step <= (1+standsOut)*usual {
		return
	}
	for _, rank := range timed {
		byHost[rank.Host] = append(byHost[rank.Host], rank.Long)
	}
	long := make(map[string]float64, len(byHost))
	for host, groups := range byHost {
		long[host] = shared.Median(groups)
	}
	hosts := slices.SortedFunc(maps.Keys(long), func(x, y string) int { return cmp.Or(cmp.Compare(long[x], long[y]), cmp.Compare(y, x)) })
	host, half := hosts[len(hosts)-1], hosts[(len(hosts)-1)/2]
	step := timed[len(timed)-1].Step
	of, others := shift.Counts{Of: int(long[host]), All: pace.Groups}, shift.Counts{Of: int(long[half]), All: pace.Groups}
	if host == "" || float64(len(hosts))*shift.Fisher(of, others) >= byChance {
		return
	}
	p := describeSlow(s, r, b, r.Seen.Add(-time.Duration(long[host]*pace.GroupSteps*step*1e9)), "%.3g s a step in the mean, %.3g in the median (%+.0f %%)", usual, step)
	p.Evidence = append(p.Evidence, fmt.Sprintf("%s: in %d of %d groups of %d steps it loads data or does the forward pass for longer in one, other hosts in %d", host, of.Of, of.All, pace.GroupSteps, others.Of))
	p.Host, p.Next = host, "Look at what else "+host+" does at times, at its storage and the clocks of its GPUs."
	report(p)
}

// phaseEvidence names the phases that take longer, and on how many ranks.
func phaseEvidence(p *problem.Problem, r *runs.Run) {
	var grown [pace.MaxPhases]struct {
		usual, recent []float64
		hosts         []string
	}
	compared, hosts := 0, make(map[string]bool)
	for rank := range present(r) {
		growths, ok := rank.Growths()
		if !ok {
			continue
		}
		compared++
		hosts[rank.Host] = true
		for phase := range growths {
			if g, to := &growths[phase], &grown[phase]; g.Grew {
				to.usual, to.recent, to.hosts = append(to.usual, g.Usual), append(to.recent, g.Recent), append(to.hosts, rank.Host)
			}
		}
	}
	for phase := range grown {
		g := &grown[phase]
		n := len(g.recent)
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%s %.3g → %.3g s", wallclock.Phase(phase), shared.Median(g.usual), shared.Median(g.recent))
		if compared > 1 {
			text += fmt.Sprintf(", %d of %d ranks", n, compared)
		}
		host := ""
		if slices.Sort(g.hosts); g.hosts[0] == g.hosts[n-1] && len(hosts) > 1 {
			host = g.hosts[0]
			text += ", all on " + host
		}
		at := len(p.Evidence)
		if phase == int(wallclock.DataLoad) {
			// The one phase that does not wait for other ranks.
			at, p.Host, p.Next = 1, host, "Look at the input: storage, network and the workers of the data loader."
		}
		p.Evidence = slices.Insert(p.Evidence, at, text)
	}
}

// slowHosts finds hosts that are slow in several runs.
type slowHosts struct{ hosts ranks.Hosts }

// detect compares the hosts of all runs.
func (d *slowHosts) detect(s *State, report func(problem.Problem)) {
	for _, r := range s.Runs {
		d.hosts.Compare(programOf(&r.Key.Resource, r.Key.ID), loads(r), s.Limits.Stall, s.Now)
	}
	for _, slow := range d.hosts.Slow(s.Now) {
		report(problem.Problem{
			Kind: mlattr.ProblemSlowHost, Onset: slow.Since,
			Subject: problem.Subject{Host: slow.Host}, GPUs: float64(slow.Ranks),
			Measure: problem.Measure{Value: slow.Seconds, Usual: slow.Usual, Unit: "s", Count: int64(len(slow.Runs)), Telemetry: math.NaN()},
			Evidence: []string{
				fmt.Sprintf("%s load data for %.3g s a step, those on other hosts for %.3g", quantity(slow.Ranks, "rank", "ranks"), slow.Seconds, slow.Usual),
				fmt.Sprintf("in %d runs: %s", len(slow.Runs), listed(slow.Runs)),
			},
			Next: "Look at the storage, the network and the CPUs of " + slow.Host + ", or leave it out of the next run.",
		})
	}
}

// loads returns how long each rank of a running run loads data, and how often its steps are
// long.
func loads(r *runs.Run) (timed []ranks.Timed) {
	if r.State != runs.Running {
		return nil
	}
	for rank := range present(r) {
		if !rank.Missing && rank.Own[0].Step > 0 && rank.State == runs.Running {
			timed = append(timed, ranks.Timed{Host: rank.Host, Typical: rank.Own[0]})
		}
	}
	return timed
}
