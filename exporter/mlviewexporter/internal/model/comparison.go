package model

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/compare"
)

// Values of Comparison.Basis.
const (
	// BasisLastGood is the last run of the same service, and of the same job name if
	// there is one, that began before, took steps and ended without a problem.
	BasisLastGood = "last_good"
	// BasisChosen is the run that was asked for.
	BasisChosen = "chosen"
)

// Comparison is a run beside another one, and the document of
// GET /api/v1/runs/{key}/compare.
type Comparison struct {
	Run Profile `json:"run"`
	// With is the other run. It is omitted if there is none, and Why says why.
	With *Profile `json:"with,omitempty"`
	Why  string   `json:"why,omitempty"`
	// Basis is last_good or chosen.
	Basis string `json:"basis"`
	// Settings are those that differ. Equal is the number of the others.
	Settings []SettingPair `json:"settings"`
	Equal    int           `json:"equal"`
	// Changes are those of the service and of the hosts of Run between the starts of
	// the two runs and since, and those of Run, the newest first.
	Changes []Change `json:"changes"`
	// Parting says where the curves of the loss part. It is omitted if one run has
	// none.
	Parting *Parting `json:"parting,omitempty"`
	// Others are the runs that Run can be compared with, those of its service first.
	Others []RunName `json:"others"`
}

// SettingPair is a setting that differs between two runs. A value that is not known
// is empty.
type SettingPair struct {
	Name string `json:"name"`
	Run  string `json:"run"`
	With string `json:"with"`
}

// RunName names a run that another one can be compared with.
type RunName struct {
	Key       string    `json:"key"`
	ID        string    `json:"id"`
	Service   string    `json:"service"`
	State     string    `json:"state"`
	FirstSeen time.Time `json:"first_seen"`
	// Good reports whether it has ended without a problem.
	Good bool `json:"good,omitempty"`
}

// Parting says where two curves part: where they stay further apart than their
// noise.
type Parting struct {
	// Curve is the name of the curve. By is what it was compared by: steps, or elapsed
	// if a run has no steps.
	Curve string `json:"curve"`
	By    string `json:"by"`
	// Positions is the number of positions that were compared, between From and To.
	// It is 0 if they are fewer than 20, which are not judged.
	Positions int     `json:"positions"`
	From      float64 `json:"from"`
	To        float64 `json:"to"`
	// Parted reports whether the curves part; At is the first position at which they
	// do. There, Run and With are the smoothed curves, and Band is the difference
	// beyond which they part.
	Parted bool     `json:"parted"`
	At     *float64 `json:"at,omitempty"`
	Run    *float64 `json:"run,omitempty"`
	With   *float64 `json:"with,omitempty"`
	Band   *float64 `json:"band,omitempty"`
	// Time is when Run was at that position.
	Time *time.Time `json:"time,omitempty"`
}

// maxOthers limits Comparison.Others.
const maxOthers = 50

// compare returns the run with a key beside another one: the one with the key other,
// or, if other is empty, the last good one. ok is false if there is no such run or
// no such other one.
func (s *runs) compare(key, other string, now time.Time) (c *Comparison, ok bool) {
	run := s.profileWith(key, now)
	if run == nil {
		return nil, false
	}
	c = &Comparison{Run: *run, Basis: BasisLastGood}
	if other != "" {
		c.Basis = BasisChosen
		if c.With = s.profileWith(other, now); c.With == nil {
			return nil, false
		}
	} else if r := s.byKey[key]; r != nil {
		if good := s.good.last(r); good != nil {
			c.With = &good.Profile
		}
	}
	if c.With == nil {
		c.Why = "No earlier run of this service has ended without a problem since the page keeps runs."
	} else {
		c.differ()
	}
	c.Changes = s.changes.between(c)
	c.Others = s.others(&c.Run.Run)
	makeList(&c.Settings)
	makeList(&c.Changes)
	makeList(&c.Others)
	return c, true
}

// profileWith returns the profile of the run with a key, nil if there is none.
func (s *runs) profileWith(key string, now time.Time) *Profile {
	at := slices.IndexFunc(s.good, func(g *goodRun) bool { return g.Run.Key == key })
	// A run that has ended for long has no current values any more.
	if at >= 0 && (s.byKey[key] == nil || s.byKey[key].kept) {
		return &s.good[at].Profile
	}
	if r := s.byKey[key]; r != nil {
		return r.profile(now)
	}
	return nil
}

// differ finds what differs.
func (c *Comparison) differ() {
	names := make(map[string]*SettingPair)
	for _, one := range c.Run.Settings {
		names[one.Name] = &SettingPair{Name: one.Name, Run: one.Value}
	}
	for _, one := range c.With.Settings {
		if names[one.Name] == nil {
			names[one.Name] = &SettingPair{Name: one.Name}
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
	slices.SortFunc(c.Settings, func(a, b SettingPair) int { return cmp.Compare(a.Name, b.Name) })
	if a, b := c.Run.Curve("loss"), c.With.Curve("loss"); a != nil && b != nil {
		c.Parting = part(a, b, c.Run.Run.FirstSeen)
	}
}

// part returns where two curves part, by step if both have steps. The curve begins
// at start.
func part(a, b *ProfileCurve, start time.Time) *Parting {
	p := &Parting{Curve: a.Name, By: "steps"}
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
		p.At, p.Run, p.With, p.Band = &at, finite(found.Value), finite(found.Other), finite(found.Band)
		i, _ := slices.BinarySearch(atA, found.At)
		p.Time = timePointer(start.Add(time.Duration(a.Elapsed[min(i, len(atA)-1)] * float64(time.Second))))
	}
	return p
}

// others returns the runs that a run can be compared with: those of its service
// first, of these the good ones first, the newest first.
func (s *runs) others(run *Run) []RunName {
	all := make(map[string]RunName, len(s.all)+len(s.good))
	add := func(row *Run, good bool) {
		if row.Key != run.Key && (row.Steps != nil || good) {
			all[row.Key] = RunName{row.Key, row.ID, row.Service, row.State, row.FirstSeen, good}
		}
	}
	for _, r := range s.all {
		// Others than those of the service would be too many to look at.
		if r.service == run.Service && r.namespace == run.Team && len(r.curves.fine.times) > 0 {
			add(&Run{Key: r.key, ID: r.id, Service: r.service, State: r.state, FirstSeen: r.firstSeen.UTC(), Steps: new(float64)}, false)
		}
	}
	for _, g := range s.good {
		add(&g.Run, true)
	}
	rows := make([]RunName, 0, len(all))
	for _, one := range all {
		rows = append(rows, one)
	}
	slices.SortFunc(rows, func(a, b RunName) int {
		return cmp.Or(trueFirst(a.Service == run.Service, b.Service == run.Service), trueFirst(a.Good, b.Good),
			b.FirstSeen.Compare(a.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
	return rows[:min(len(rows), maxOthers)]
}
