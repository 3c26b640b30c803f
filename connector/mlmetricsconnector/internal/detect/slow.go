package detect

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// notSlow is how many times the usual time a run takes at which it is slow no longer. It
// is slow from pace.Slower times on.
const notSlow = 1.2

// slow finds runs whose steps have taken longer than usual for stall_timeout: by a third
// or more, or by a few hundredths where they vary less. Then 400 steps suffice.
type slow struct{ known map[streams.RunKey]slowness }

// slowness is since when a run is slow, and whether this is a problem.
type slowness struct {
	since    time.Time
	reported bool
}

// detect reports the slow runs.
func (d *slow) detect(s *State, report func(problem.Problem)) {
	was := d.known
	d.known = make(map[streams.RunKey]slowness)
	for _, r := range s.Runs {
		is := was[r.Key]
		if is.settle(s, r); !is.since.IsZero() {
			d.known[r.Key] = is
		}
		times := &r.Steps.Times
		if is.reported {
			report(describeSlow(r, is.since, times.Usual, times.Recent))
		} else if shift := &r.Steps.Shift; shift.Lasts(s.Limits.Stall) {
			report(describeSlow(r, r.Seen.Add(-shift.Lasted), shift.Usual, shift.Now))
		} else if drift := &r.Steps.Drift; drift.Steps > 0 {
			report(describeSlow(r, r.Seen.Add(-drift.Lasted), drift.Usual, drift.Now))
		}
	}
}

// settle determines whether the run is slow. Once it has been for stall_timeout, the
// newest steps must be slow too, once: the median of 20 stays high for up to 10 steps
// after others have used the storage or the network for a short time.
func (is *slowness) settle(s *State, r *runs.Run) {
	times := &r.Steps.Times
	switch {
	case r.Steps.Longer.IsZero(), times.Recent <= notSlow*times.Usual:
		is.since = time.Time{}
	case is.since.IsZero() && times.Recent > pace.Slower*times.Usual:
		is.since = r.LongerSince(pace.Slower)
	}
	is.reported = !is.since.IsZero() &&
		(is.reported || s.Now.Sub(is.since) >= s.Limits.Stall && times.Newest > pace.Slower*times.Usual)
}

// describeSlow describes a run whose steps take so many seconds instead of the usual.
func describeSlow(r *runs.Run, since time.Time, usual, now float64) problem.Problem {
	p := of(r, mlattr.ProblemSlow)
	p.Onset, p.Value, p.Usual, p.Unit, p.Count = since, now, usual, "s", pace.RecentSteps
	p.Window = time.Duration(now * pace.RecentSteps * float64(time.Second))
	p.Next, p.Excluded = "Compare the phases of the ranks.", r.Excluded()
	p.GPUs *= 1 - usual/now // what they do longer
	p.Evidence = append(p.Evidence, fmt.Sprintf("%.3g s a step, usually %.3g (%+.0f %%)", now, usual, 100*(now/usual-1)))
	phaseEvidence(&p, r)
	slowRanks(&p, r)
	var reasons []string
	for i := range r.GPUs.All {
		reasons = append(reasons, r.GPUs.All[i].Throttled...)
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		p.Evidence = append(p.Evidence, "clocks are lowered: "+listed(slices.Compact(reasons)))
	}
	return p
}

// standsOut is the least share of a step that a slow rank computes longer than the others.
const standsOut = 0.05

// slowRanks names the ranks, at most a quarter, that compute longer than the others, which
// wait for them.
func slowRanks(p *problem.Problem, r *runs.Run) {
	for _, backward := range [...]bool{true, false} {
		var all []*runs.Rank
		var seconds []float64
		step := 0.0
		for rank := range present(r) {
			if takes, whole, ok := rank.Computes(backward); ok && !rank.Missing {
				all, seconds, step = append(all, rank), append(seconds, takes), max(step, whole)
			}
		}
		median, spread := pace.Spread(slices.Clone(seconds))
		var slow []*runs.Rank
		most := 0.0
		for i, rank := range all {
			if seconds[i]-median >= max(standsOut*step, 6*spread) {
				slow, most = append(slow, rank), max(most, seconds[i])
			}
		}
		if len(slow) == 0 || len(slow) > max(1, len(all)/4) || len(all) < 3 {
			continue
		}
		p.Rank, p.Host = slow[0].Name, slow[0].Host
		names := nameOf(r, slow[0])
		if len(slow) > 1 {
			names += fmt.Sprintf(" and %s more", quantity(len(slow)-1, "rank", "ranks"))
		}
		p.Evidence = append(p.Evidence, fmt.Sprintf("%s: %.3g s of computing a step, the others %.3g: they wait for it", names, most, median))
		p.Next = "Look at the GPU, the processor and the input of " + nameOf(r, slow[0]) + "."
		return
	}
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
		text := fmt.Sprintf("%s %.3g → %.3g s", wallclock.Phase(phase), pace.Median(g.usual), pace.Median(g.recent))
		if compared > 1 {
			text += fmt.Sprintf(", %d of %d ranks", n, compared)
		}
		host := ""
		if slices.Sort(g.hosts); g.hosts[0] == g.hosts[n-1] && len(hosts) > 1 {
			host = g.hosts[0]
			text += ", all on " + host
		}
		if phase != int(wallclock.DataLoad) {
			p.Evidence = append(p.Evidence, text)
			continue
		}
		// The one phase that does not wait for other ranks.
		p.Evidence = slices.Insert(p.Evidence, 1, text)
		p.Host = host
		p.Next = "Look at the input: storage, network and the workers of the data loader."
	}
}

// slowHosts finds hosts that are slow in several runs.
type slowHosts struct{ hosts ranks.Hosts }

// detect compares the hosts of all runs.
func (d *slowHosts) detect(s *State, report func(problem.Problem)) {
	for _, r := range s.Runs {
		d.hosts.Compare(r.Key.Resource.Service+"/"+r.Key.ID, loads(r), s.Limits.Stall, s.Now)
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

// loads returns how long each rank of a running run loads data.
func loads(r *runs.Run) (timed []ranks.Timed) {
	if r.State != runs.Running {
		return nil
	}
	for rank := range present(r) {
		if !rank.Missing && rank.Load != nil && rank.State == runs.Running {
			timed = append(timed, ranks.Timed{Host: rank.Host, Typical: *rank.Load})
		}
	}
	return timed
}
