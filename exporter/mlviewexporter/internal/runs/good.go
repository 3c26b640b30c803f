package runs

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/curves"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

const (
	// maxGood limits the good runs that are kept, maxGoodOfJob those of one job.
	maxGood      = 32
	maxGoodOfJob = 2
)

// GoodRun is a run that has ended without a problem. It is kept for others to be
// compared with, after the run itself has left the page.
type GoodRun struct {
	Namespace string `json:"namespace,omitempty"`
	// Job is ml.job.name, Ended when the run had ended.
	Job   string    `json:"job,omitempty"`
	Ended time.Time `json:"ended"`
	api.Profile
}

// goodRuns are those that others are compared with, those that ended last at the end.
type goodRuns []*GoodRun

// keepGood keeps a run that has ended, took steps, did not fail, and had no problem while
// it ran. It does so once, and again if the run ends again.
func (r *Run) keepGood(now time.Time) {
	if r.state != mlattr.RunEnded {
		r.kept = false
		return
	}
	if r.kept {
		return
	}
	r.kept = true
	if r.failed || len(r.Curves.Fine.Times) == 0 || r.in.changes.Spoiled(r.Key) {
		return
	}
	good := &r.in.Good
	*good = slices.DeleteFunc(*good, func(g *GoodRun) bool { return g.Run.Key == r.Key })
	good.add(&GoodRun{Namespace: r.Namespace, Job: r.JobName, Ended: now.UTC(), Profile: *r.profile(now)})
}

// add adds a good run. It removes the oldest of the same job beyond the limit,
// else the oldest of all.
func (all *goodRuns) add(one *GoodRun) {
	*all = append(*all, one)
	slices.SortStableFunc(*all, func(a, b *GoodRun) int { return a.Ended.Compare(b.Ended) })
	n := 0
	for _, g := range slices.Backward(*all) {
		if g.sameJob(one) {
			if n++; n > maxGoodOfJob {
				*all = slices.DeleteFunc(*all, func(other *GoodRun) bool { return other == g })
				break
			}
		}
	}
	if len(*all) > maxGood {
		*all = slices.Delete(*all, 0, 1)
	}
}

func (g *GoodRun) sameJob(other *GoodRun) bool {
	return g.Namespace == other.Namespace && g.Run.Service == other.Run.Service && g.Job == other.Job
}

// last returns the run that a run is compared with unless another one is named:
// the last good one of its service that began before it, of the same job name if
// there is one. It returns nil if there is none.
func (all goodRuns) last(r *Run) *GoodRun {
	var found *GoodRun
	for _, g := range slices.Backward(all) {
		if g.Namespace != r.Namespace || g.Run.Service != r.Service || g.Run.Key == r.Key || !g.Run.FirstSeen.Before(r.FirstSeen) {
			continue
		}
		if g.Job == r.JobName {
			return g
		}
		if found == nil {
			found = g
		}
	}
	return found
}

// prune removes good runs of more than a week ago.
func (all *goodRuns) prune(now time.Time) {
	*all = slices.DeleteFunc(*all, func(g *GoodRun) bool { return now.Sub(g.Ended) > kept.Week })
}

// Restore adds the good runs of before a restart, as far as they are whole.
func (all *goodRuns) Restore(saved []*GoodRun, recent func(time.Time) bool) {
	for _, g := range saved[:min(len(saved), maxGood)] {
		if g == nil || !recent(g.Ended) || !g.whole() || slices.ContainsFunc(*all, func(known *GoodRun) bool { return known.Run.Key == g.Run.Key }) {
			continue
		}
		for _, text := range []*string{&g.Namespace, &g.Job, &g.Run.Service, &g.Run.ID, &g.Run.Job, &g.Run.Owner, &g.Run.Team, &g.Run.Version} {
			*text = strings.Clone(kept.Cut(*text, kept.MaxLabel))
		}
		g.Run.Needs, g.Run.GPUKeys, g.Run.Why = nil, nil, nil
		g.MakeLists()
		all.add(g)
	}
}

// whole reports whether the lists of a saved run have the lengths that Export
// writes.
func (g *GoodRun) whole() bool {
	if len(g.Settings) > 2*maxSettings || len(g.Numbers) > maxSettings || len(g.Phases) > maxStreamsOfWhole || len(g.Curves) > int(curves.Count) || len(g.Run.Hosts) > fleet.MaxHosts {
		return false
	}
	for i := range g.Curves {
		c := &g.Curves[i]
		n := len(c.Values)
		if n == 0 || n > maxProfilePoints || len(c.Elapsed) != n || len(c.Steps) != n && len(c.Steps) != 0 || len(c.Epochs) != n && len(c.Epochs) != 0 {
			return false
		}
		for _, v := range c.Values {
			if math.Abs(v) > series.MaxValue {
				return false
			}
		}
	}
	return g.Run.Key == api.Key("run", g.Namespace, g.Run.Service, g.Run.ID)
}

// settledAfter is how long a run must look hung or be silent until it counts as
// settled: longer than a restart or a slow checkpoint takes.
const settledAfter = 10 * time.Minute

// Settled is a run that has come to an end: it has ended, or it has looked hung or
// been silent for 10 minutes.
type Settled struct {
	// Key is the key of the run, State its ml.run.state and Since when it settled.
	Key, State string
	Since      time.Time
	// Path is the share of its sender and service, Again whether the run did not come
	// only once.
	Path  share.Path
	Again bool
}

// Settled returns the runs that have settled and whose last numbers have been
// recorded.
func (s *Set) Settled(now time.Time) (all []Settled) {
	s.Record(now)
	for _, r := range s.All {
		if r.stateNoted.IsZero() || len(r.Curves.Fine.Times) == 0 {
			continue
		}
		wait := settledAfter
		switch r.state {
		case mlattr.RunEnded, mlattr.RunFailed:
			// The last numbers of a run arrive together with its end.
			wait = 2 * s.settings.Interval
		case mlattr.RunStalled, mlattr.RunSilent:
		default:
			continue
		}
		if now.Sub(r.stateNoted) >= wait {
			all = append(all, Settled{r.Key, r.state, r.stateNoted, s.limits.Shares.Path(r.origin), r.Again})
		}
	}
	return all
}
