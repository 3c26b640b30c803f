package api

import "time"

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

// Profile is what a run is compared by.
type Profile struct {
	Run Run `json:"run"`
	// Settings are what is known of how the run was started, ordered by name.
	Settings []Setting `json:"settings"`
	// Numbers are those of the whole run.
	Numbers []RunNumber `json:"numbers"`
	// Phases are the mean seconds of each phase in a step, of the whole run and all
	// ranks, the longest first.
	Phases []RunNumber    `json:"phases"`
	Curves []ProfileCurve `json:"curves"`
}

// RunNumber is a number of a whole run.
type RunNumber struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// ProfileCurve is a number over time, with the step and the epoch at which it was.
// All lists have the same length, or are empty if nobody reports steps or epochs.
type ProfileCurve struct {
	// Name and Unit are those of a Curve.
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Elapsed are seconds since the page first saw the run.
	Elapsed []float64 `json:"elapsed"`
	Steps   []float64 `json:"steps"`
	Epochs  []float64 `json:"epochs"`
	Values  []float64 `json:"values"`
}

// MakeLists does for a Profile what it does for a State.
func (p *Profile) MakeLists() {
	MakeList(&p.Settings)
	MakeList(&p.Numbers)
	MakeList(&p.Phases)
	MakeList(&p.Curves)
	for i := range p.Curves {
		c := &p.Curves[i]
		MakeList(&c.Elapsed)
		MakeList(&c.Steps)
		MakeList(&c.Epochs)
		MakeList(&c.Values)
	}
}

// Curve returns the curve with a name, or nil.
func (p *Profile) Curve(name string) *ProfileCurve {
	for i := range p.Curves {
		if p.Curves[i].Name == name {
			return &p.Curves[i]
		}
	}
	return nil
}

// Setting is something that is known of how a run was started: its attribute and
// the value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Spent is what the time of a run went to since the page first saw it. It does not
// grow after the run has ended.
type Spent struct {
	// States has the seconds in each ml.run.state.
	States map[string]float64 `json:"states,omitempty"`
	// Uses has the seconds by use, as ml.run.time.ratio names it: that ratio of each
	// 15 minutes.
	Uses map[string]float64 `json:"uses,omitempty"`
	// GPUHours are the GPUs that the run held, times hours, nil if none is known.
	GPUHours *float64 `json:"gpu_hours,omitempty"`
	// GPUCost is what these cost in US dollars, nil if no price is known.
	GPUCost *float64 `json:"gpu_cost,omitempty"`
}
