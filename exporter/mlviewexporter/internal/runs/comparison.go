package runs

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/compare"
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
	api.MakeList(&c.Settings)
	api.MakeList(&c.Changes)
	api.MakeList(&c.Others)
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
	names := make(map[string]*api.SettingPair)
	for _, one := range c.Run.Settings {
		names[one.Name] = &api.SettingPair{Name: one.Name, Run: one.Value}
	}
	for _, one := range c.With.Settings {
		if names[one.Name] == nil {
			names[one.Name] = &api.SettingPair{Name: one.Name}
		}
		names[one.Name].With = one.Value
	}
	for _, pair := range names {
		if pair.Run == pair.With {
			c.Equal++
		} else {
			c.Settings = append(c.Settings, *pair)
		}
	}
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
	add := func(row *api.Run, good bool) {
		if row.Key != run.Key && (row.Steps != nil || good) {
			all[row.Key] = api.RunName{Key: row.Key, ID: row.ID, Service: row.Service, State: row.State, FirstSeen: row.FirstSeen, Good: good}
		}
	}
	for _, r := range s.All {
		// Others than those of the service would be too many to look at.
		if r.Service == run.Service && r.Namespace == run.Team && len(r.Curves.Fine.Times) > 0 {
			add(&api.Run{Key: r.Key, ID: r.ID, Service: r.Service, State: r.state, FirstSeen: r.FirstSeen.UTC(), Steps: new(float64)}, false)
		}
	}
	for _, g := range s.Good {
		add(&g.Run, true)
	}
	rows := make([]api.RunName, 0, len(all))
	for _, one := range all {
		rows = append(rows, one)
	}
	slices.SortFunc(rows, func(a, b api.RunName) int {
		return cmp.Or(api.TrueFirst(a.Service == run.Service, b.Service == run.Service), api.TrueFirst(a.Good, b.Good),
			b.FirstSeen.Compare(a.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
	return rows[:min(len(rows), maxOthers)]
}
