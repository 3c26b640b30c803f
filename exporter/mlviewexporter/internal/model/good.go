package model

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxGood limits the good runs that are kept, maxGoodOfJob those of one job.
	maxGood      = 32
	maxGoodOfJob = 2
)

// goodRun is a run that has ended without a problem. It is kept for others to be
// compared with, after the run itself has left the page.
type goodRun struct {
	Namespace string `json:"namespace,omitempty"`
	// Job is ml.job.name, Ended when the run had ended.
	Job   string    `json:"job,omitempty"`
	Ended time.Time `json:"ended"`
	Profile
}

// goodRuns are those that others are compared with, those that ended last at the end.
type goodRuns []*goodRun

// keepGood keeps a run that has ended, took steps, did not fail, and had no problem while
// it ran. It does so once, and again if the run ends again.
func (r *run) keepGood(now time.Time) {
	if r.state != mlattr.RunEnded {
		r.kept = false
		return
	}
	if r.kept {
		return
	}
	r.kept = true
	if r.failed || len(r.curves.fine.times) == 0 || r.in.changes.spoiled(r.key) {
		return
	}
	good := &r.in.good
	*good = slices.DeleteFunc(*good, func(g *goodRun) bool { return g.Run.Key == r.key })
	good.add(&goodRun{Namespace: r.namespace, Job: r.jobName, Ended: now.UTC(), Profile: *r.profile(now)})
}

// add adds a good run. It removes the oldest of the same job beyond the limit,
// else the oldest of all.
func (all *goodRuns) add(one *goodRun) {
	*all = append(*all, one)
	slices.SortStableFunc(*all, func(a, b *goodRun) int { return a.Ended.Compare(b.Ended) })
	n := 0
	for _, g := range slices.Backward(*all) {
		if g.sameJob(one) {
			if n++; n > maxGoodOfJob {
				*all = slices.DeleteFunc(*all, func(other *goodRun) bool { return other == g })
				break
			}
		}
	}
	if len(*all) > maxGood {
		*all = slices.Delete(*all, 0, 1)
	}
}

func (g *goodRun) sameJob(other *goodRun) bool {
	return g.Namespace == other.Namespace && g.Run.Service == other.Run.Service && g.Job == other.Job
}

// last returns the run that a run is compared with unless another one is named:
// the last good one of its service that began before it, of the same job name if
// there is one. It returns nil if there is none.
func (all goodRuns) last(r *run) *goodRun {
	var found *goodRun
	for _, g := range slices.Backward(all) {
		if g.Namespace != r.namespace || g.Run.Service != r.service || g.Run.Key == r.key || !g.Run.FirstSeen.Before(r.firstSeen) {
			continue
		}
		if g.Job == r.jobName {
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
	*all = slices.DeleteFunc(*all, func(g *goodRun) bool { return now.Sub(g.Ended) > importedFor })
}

// restore adds the good runs of before a restart, as far as they are whole.
func (all *goodRuns) restore(saved []*goodRun, recent func(time.Time) bool) {
	for _, g := range saved[:min(len(saved), maxGood)] {
		if g == nil || !recent(g.Ended) || !g.whole() || slices.ContainsFunc(*all, func(known *goodRun) bool { return known.Run.Key == g.Run.Key }) {
			continue
		}
		for _, text := range []*string{&g.Namespace, &g.Job, &g.Run.Service, &g.Run.ID, &g.Run.Job, &g.Run.Owner, &g.Run.Team, &g.Run.Version} {
			*text = strings.Clone(cut(*text, maxLabel))
		}
		g.Run.Needs, g.Run.GPUKeys, g.Run.Why = nil, nil, nil
		g.makeLists()
		all.add(g)
	}
}

// whole reports whether the lists of a saved run have the lengths that Export
// writes.
func (g *goodRun) whole() bool {
	if len(g.Settings) > 2*maxSettings || len(g.Numbers) > maxSettings || len(g.Phases) > maxStreamsOfWhole || len(g.Curves) > int(curveCount) || len(g.Run.Hosts) > maxHosts {
		return false
	}
	for i := range g.Curves {
		c := &g.Curves[i]
		n := len(c.Values)
		if n == 0 || n > maxProfilePoints || len(c.Elapsed) != n || len(c.Steps) != n && len(c.Steps) != 0 || len(c.Epochs) != n && len(c.Epochs) != 0 {
			return false
		}
		for _, v := range c.Values {
			if math.Abs(v) > maxValue {
				return false
			}
		}
	}
	return g.Run.Key == keyOf("run", g.Namespace, g.Run.Service, g.Run.ID)
}
