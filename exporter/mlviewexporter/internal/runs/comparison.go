package runs

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/compare"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/curves"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// maxOthers limits Comparison.Others.
const maxOthers = 50

// Compare returns the run with a key beside another one: the one with the key other,
// or, if other is empty, the last good one. ok is false if there is no such run or
// no such other one.
func (s *Set) Compare(key, other string, now time.Time) (c *api.Comparison, ok bool) {
	run := s.profileWith(key, now)
	if run == nil {
		return nil, false
	}
	c = &api.Comparison{Run: *run, Basis: api.BasisLastGood}
	if other != "" {
		c.Basis = api.BasisChosen
		if c.With = s.profileWith(other, now); c.With == nil {
			return nil, false
		}
	} else if r := s.ByKey[key]; r != nil {
		if good := s.Good.last(r); good != nil {
			c.With = &good.Profile
		}
	}
	if c.With == nil {
		c.Why = "No earlier run of this service has ended without a problem since the page keeps runs."
	} else {
		differ(c)
	}
	c.Changes = s.changes.Between(c)
	c.Others = s.others(&c.Run.Run)
	api.MakeLists(c)
	return c, true
}

// profileWith returns the profile of the run with a key, nil if there is none.
func (s *Set) profileWith(key string, now time.Time) *api.Profile {
	at := slices.IndexFunc(s.Good, func(g *GoodRun) bool { return g.Run.Key == key })
	// A run that has ended for long has no current values any more.
	if at >= 0 && (s.ByKey[key] == nil || s.ByKey[key].kept) {
		return &s.Good[at].Profile
	}
	if r := s.ByKey[key]; r != nil {
		return r.profile(now)
	}
	return nil
}

// differ finds what differs.
func differ(c *api.Comparison) {
	pairs := make(map[string]api.SettingPair)
	for _, one := range c.Run.Settings {
		pairs[one.Name] = api.SettingPair{Name: one.Name, Run: one.Value}
	}
	for _, one := range c.With.Settings {
		pairs[one.Name] = api.SettingPair{Name: one.Name, Run: pairs[one.Name].Run, With: one.Value}
	}
	c.Settings = mlattr.Where(maps.Values(pairs), func(pair api.SettingPair) bool { return pair.Run != pair.With })
	c.Equal = len(pairs) - len(c.Settings)
	slices.SortFunc(c.Settings, func(a, b api.SettingPair) int { return cmp.Compare(a.Name, b.Name) })
	if a, b := c.Run.Curve("loss"), c.With.Curve("loss"); a != nil && b != nil {
		c.Parting = part(a, b, c.Run.Run.FirstSeen)
	}
}

// part returns where two curves part, by step if both have steps. The curve begins
// at start.
func part(a, b *api.ProfileCurve, start time.Time) *api.Parting {
	p := &api.Parting{Curve: a.Name, By: "steps"}
	atA, atB := a.Steps, b.Steps
	if len(atA) == 0 || len(atB) == 0 {
		p.By, atA, atB = "elapsed", a.Elapsed, b.Elapsed
	}
	found, ok := compare.Part(compare.Curve{At: atA, Values: a.Values}, compare.Curve{At: atB, Values: b.Values})
	if !ok {
		return p
	}
	p.From, p.To, p.Positions, p.Parted = math.Round(found.From), math.Round(found.To), found.Positions, found.Parted
	if p.Parted {
		at := math.Round(found.At)
		p.At, p.Run, p.With, p.Band = &at, api.Finite(found.Value), api.Finite(found.Other), api.Finite(found.Band)
		i, _ := slices.BinarySearch(atA, found.At)
		p.Time = api.TimeOf(start.Add(time.Duration(a.Elapsed[min(i, len(atA)-1)] * float64(time.Second))))
	}
	return p
}

// others returns the runs that a run can be compared with: those of its service
// first, of these the good ones first, the newest first.
func (s *Set) others(run *api.Run) []api.RunName {
	all := make(map[string]api.RunName, len(s.All)+len(s.Good))
	for _, r := range s.All {
		// Others than those of the service would be too many to look at.
		if r.Service == run.Service && r.Namespace == run.Team && len(r.Curves.Fine.Times) > 0 {
			all[r.Key] = api.RunName{Key: r.Key, ID: r.ID, Service: r.Service, State: r.State, FirstSeen: r.FirstSeen.UTC()}
		}
	}
	for _, g := range s.Good {
		all[g.Run.Key] = api.RunName{Key: g.Run.Key, ID: g.Run.ID, Service: g.Run.Service, State: g.Run.State, FirstSeen: g.Run.FirstSeen, Good: true}
	}
	delete(all, run.Key)
	rows := slices.SortedFunc(maps.Values(all), func(a, b api.RunName) int {
		return cmp.Or(api.TrueFirst(a.Service == run.Service, b.Service == run.Service), api.TrueFirst(a.Good, b.Good),
			b.FirstSeen.Compare(a.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
	return rows[:min(len(rows), maxOthers)]
}

// maxProfilePoints limits the points of a curve of a Profile.
const maxProfilePoints = 240

// profile returns what the run is compared by.
func (r *Run) profile(now time.Time) *api.Profile {
	p := &api.Profile{Run: r.Row(now), Settings: r.Settings(), Phases: r.meanPhases()}
	p.Curves = r.Curves.Profile(r.FirstSeen, r.StepsEnd(p.Run.State))
	addNumbers(p, &r.last, r.Spent.Row())
	for i := range p.Curves {
		p.Curves[i] = thinned(p.Curves[i], maxProfilePoints)
	}
	api.MakeLists(p)
	return p
}

// lastOf returns the last value of a curve, or nil.
func lastOf(p *api.Profile, curve string) *float64 {
	if c := p.Curve(curve); c != nil {
		return api.Finite(c.Values[len(c.Values)-1])
	}
	return nil
}

// meanPhases returns the mean time of each phase of a step over the whole run.
func (r *runStreams) meanPhases() []api.RunNumber {
	times := make(phaseTimes)
	for one := range r.StepDurations() {
		times.add(one, one.Value, one.Count)
	}
	known := mlattr.Where(slices.Values(times.rows()), func(p api.Phase) bool { return p.SecondsPerStep != nil })
	slices.SortFunc(known, comparePhases)
	return mlattr.Mapped(known, func(p api.Phase) api.RunNumber {
		return api.RunNumber{Name: p.Phase, Unit: "s", Value: *p.SecondsPerStep}
	})
}

// addNumbers adds the numbers of the whole run: totals, the last losses, and medians,
// means and the least or largest values of the curves.
func addNumbers(p *api.Profile, last *lastNumbers, spent api.Spent) {
	add := func(name, unit string, v *float64) {
		if v != nil {
			p.Numbers = append(p.Numbers, api.RunNumber{Name: name, Unit: unit, Value: *v})
		}
	}
	end := cmp.Or(p.Run.LastStep, &p.Run.LastSeen)
	add("duration", "s", api.Finite(max(0, end.Sub(p.Run.FirstSeen).Seconds())))
	add("steps", "{step}", p.Run.Steps)
	add("tokens", "{token}", p.Run.Tokens)
	if last.stepped.IsZero() {
		// Nothing was learnt since a restart, over which the curves are kept.
		last = &lastNumbers{loss: lastOf(p, "loss"), validation: lastOf(p, "validation_loss")}
	}
	add("loss_last", "", last.loss)
	add("validation_loss_last", "", last.validation)
	for _, of := range []struct {
		name, curve string
		compute     func([]float64) float64
	}{
		{"loss_least", "loss", slices.Min[[]float64]},
		{"learning_rate_most", "learning_rate", slices.Max[[]float64]},
		{"step_time_median", "step_time", medianOf},
		{"token_rate_median", "token_rate", medianOf},
		{"sample_rate_median", "sample_rate", medianOf},
		{"goodput_mean", "goodput", shared.Mean},
		{"gpu_utilization_median", "gpu_utilization", medianOf},
		{"gpu_memory_most", "gpu_memory", slices.Max[[]float64]},
		{"power_median", "power", medianOf},
	} {
		if c := p.Curve(of.curve); c != nil {
			add(of.name, c.Unit, api.Finite(of.compute(c.Values)))
		}
	}
	add("gpu_hours", "h", spent.GPUHours)
	add("errors", "{error}", p.Run.Errors)
	add("attempts", "{attempt}", p.Run.Attempts)
}

// medianOf returns the median of values.
func medianOf(values []float64) float64 { return shared.Median(slices.Clone(values)) }

// thinned returns at most a number of points, means of as many neighbors. The
// numbers have six digits.
func thinned(c api.ProfileCurve, most int) api.ProfileCurve {
	for _, list := range []*[]float64{&c.Elapsed, &c.Steps, &c.Epochs, &c.Values} {
		*list = compare.Thinned(*list, most)
		for i, v := range *list {
			(*list)[i] = api.Exact(float32(v))
		}
	}
	return c
}

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
	considered := r.kept
	r.kept = r.State == mlattr.RunEnded
	if !r.kept || considered || r.failed || len(r.Curves.Fine.Times) == 0 || r.in.changes.Spoiled(r.Key) {
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
	same := mlattr.Where(slices.Values(*all), func(g *GoodRun) bool {
		return g.Namespace == one.Namespace && g.Run.Service == one.Run.Service && g.Job == one.Job
	})
	if len(same) > maxGoodOfJob {
		*all = slices.DeleteFunc(*all, func(g *GoodRun) bool { return g == same[0] })
	}
	if len(*all) > maxGood {
		*all = slices.Delete(*all, 0, 1)
	}
}

// last returns the run that a run is compared with unless another one is named:
// the last good one of its service that began before it, of the same job name if
// there is one. It returns nil if there is none.
func (all goodRuns) last(r *Run) *GoodRun {
	before := mlattr.Where(slices.Values(all), func(g *GoodRun) bool {
		return g.Namespace == r.Namespace && g.Run.Service == r.Service && g.Run.Key != r.Key && g.Run.FirstSeen.Before(r.FirstSeen)
	})
	if len(before) == 0 {
		return nil
	}
	slices.Reverse(before)
	return before[max(0, slices.IndexFunc(before, func(g *GoodRun) bool { return g.Job == r.JobName }))]
}

// Restore adds the good runs of before a restart, as far as they are whole.
func (all *goodRuns) Restore(saved []*GoodRun, recent func(time.Time) bool) {
	for _, g := range saved[:min(len(saved), maxGood)] {
		if g == nil || !recent(g.Ended) || !g.whole() || slices.ContainsFunc(*all, func(known *GoodRun) bool { return known.Run.Key == g.Run.Key }) {
			continue
		}
		kept.Shorten(kept.MaxLabel, &g.Namespace, &g.Job, &g.Run.Service, &g.Run.ID, &g.Run.Job, &g.Run.Owner, &g.Run.Team, &g.Run.Version)
		g.Run.Needs, g.Run.GPUKeys, g.Run.Why = nil, nil, nil
		api.MakeLists(&g.Profile)
		all.add(g)
	}
}

// whole reports whether the lists of a saved run have the lengths that Export
// writes.
func (g *GoodRun) whole() bool {
	if len(g.Settings) > 2*maxSettings || len(g.Numbers) > maxSettings || len(g.Phases) > maxStreamsOfWhole || len(g.Curves) > int(curves.Count) || len(g.Run.Hosts) > fleet.MaxHosts {
		return false
	}
	for _, c := range g.Curves {
		n := len(c.Values)
		if n == 0 || n > maxProfilePoints || len(c.Elapsed) != n || len(c.Steps) != n && len(c.Steps) != 0 || len(c.Epochs) != n && len(c.Epochs) != 0 {
			return false
		}
		if slices.ContainsFunc(c.Values, func(v float64) bool { return math.Abs(v) > series.MaxValue }) {
			return false
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
		switch r.State {
		case mlattr.RunEnded, mlattr.RunFailed:
			// The last numbers of a run arrive together with its end.
			wait = 2 * s.Interval
		case mlattr.RunStalled, mlattr.RunSilent:
		default:
			continue
		}
		if now.Sub(r.stateNoted) >= wait {
			all = append(all, Settled{r.Key, r.State, r.stateNoted, s.Limits.Shares.Path(r.origin), r.Again})
		}
	}
	return all
}
