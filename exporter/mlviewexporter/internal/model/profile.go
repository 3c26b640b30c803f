package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/compare"
)

// maxProfilePoints limits the points of a curve of a Profile.
const maxProfilePoints = 240

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

// profile returns what the run is compared by.
func (r *run) profile(now time.Time) *Profile {
	p := &Profile{Run: r.row(now), Settings: r.settings(), Phases: r.meanPhases()}
	p.Curves = r.curves.profile(r.firstSeen, r.stepsEnd(p.Run.State))
	p.addNumbers(&r.last, r.spent.row())
	for i := range p.Curves {
		p.Curves[i] = p.Curves[i].thinned(maxProfilePoints)
	}
	p.makeLists()
	return p
}

func (p *Profile) makeLists() {
	makeList(&p.Settings)
	makeList(&p.Numbers)
	makeList(&p.Phases)
	makeList(&p.Curves)
	for i := range p.Curves {
		c := &p.Curves[i]
		makeList(&c.Elapsed)
		makeList(&c.Steps)
		makeList(&c.Epochs)
		makeList(&c.Values)
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

// lastOf returns the last value of a curve, or nil.
func (p *Profile) lastOf(curve string) *float64 {
	if c := p.Curve(curve); c != nil {
		return finite(c.Values[len(c.Values)-1])
	}
	return nil
}

// meanPhases returns the mean time of each phase of a step over the whole run.
func (r *runStreams) meanPhases() []RunNumber {
	times := make(phaseTimes)
	for one := range r.stepDurations() {
		times.add(one, one.value, one.count)
	}
	whole := times[wholeStep]
	rows := []RunNumber{}
	for phase, t := range times {
		if steps := stepsOf(t, whole); steps > 0 {
			if mean := finite(t.sum / steps); mean != nil {
				rows = append(rows, RunNumber{phase, "s", *mean})
			}
		}
	}
	slices.SortFunc(rows, func(a, b RunNumber) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// addNumbers adds the numbers of the whole run: totals, the last losses, and medians,
// means and the least or largest values of the curves.
func (p *Profile) addNumbers(last *lastNumbers, spent Spent) {
	add := func(name, unit string, v *float64) {
		if v != nil {
			p.Numbers = append(p.Numbers, RunNumber{name, unit, *v})
		}
	}
	end := p.Run.LastSeen
	if p.Run.LastStep != nil {
		end = *p.Run.LastStep
	}
	add("duration", "s", finite(max(0, end.Sub(p.Run.FirstSeen).Seconds())))
	add("steps", "{step}", p.Run.Steps)
	add("tokens", "{token}", p.Run.Tokens)
	if last.stepped.IsZero() {
		// Nothing was learnt since a restart, over which the curves are kept.
		last = &lastNumbers{loss: p.lastOf("loss"), validation: p.lastOf("validation_loss")}
	}
	add("loss_last", "", last.loss)
	add("validation_loss_last", "", last.validation)
	for _, of := range []struct {
		name, curve, unit string
		compute           func([]float64) float64
	}{
		{"loss_least", "loss", "", slices.Min[[]float64]},
		{"learning_rate_most", "learning_rate", "", slices.Max[[]float64]},
		{"step_time_median", "step_time", "s", medianOf},
		{"token_rate_median", "token_rate", "{token}/s", medianOf},
		{"sample_rate_median", "sample_rate", "{sample}/s", medianOf},
		{"goodput_mean", "goodput", "1", meanOf},
		{"gpu_utilization_median", "gpu_utilization", "1", medianOf},
		{"gpu_memory_most", "gpu_memory", "By", slices.Max[[]float64]},
		{"power_median", "power", "W", medianOf},
	} {
		if c := p.Curve(of.curve); c != nil {
			add(of.name, of.unit, finite(of.compute(c.Values)))
		}
	}
	add("gpu_hours", "h", spent.GPUHours)
	add("errors", "{error}", p.Run.Errors)
	add("attempts", "{attempt}", p.Run.Attempts)
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// medianOf returns the median of values.
func medianOf(values []float64) float64 { return compare.Median(slices.Clone(values)) }

// fewMinutes are too few means of minutes to see where two curves part: twice the positions
// that a judgement needs, because two runs may have half of them in common.
const fewMinutes = 40

// profile returns the curves that have values, each in one resolution but for runs of few
// minutes, whose last points are single ones. Times are counted from start. The numbers of
// steps end at until, in Unix seconds.
func (c *curves) profile(start time.Time, until int64) (rows []ProfileCurve) {
	all := c.evenly(until)
	if len(all.times) < fewMinutes {
		all = c.all(until, 1)
	}
	from := float64(start.Unix())
	steps, epochs := all.axis(curveSteps), all.axis(curveEpoch)
	for id, name := range curveNames {
		if curveID(id).isAxis() || all.values[id] == nil {
			continue
		}
		row := ProfileCurve{Name: name.name, Unit: name.unit}
		for i, value := range all.values[id] {
			if value != value {
				continue
			}
			row.Elapsed, row.Values = append(row.Elapsed, max(0, float64(all.times[i])-from)), append(row.Values, float64(value))
			if steps != nil {
				row.Steps = append(row.Steps, steps[i])
			}
			if epochs != nil {
				row.Epochs = append(row.Epochs, epochs[i])
			}
		}
		if len(row.Values) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// axis returns the values of steps or epochs without gaps, nil if none is known.
// Between two values the earlier one counts, before the first one 0.
func (p *points) axis(id curveID) []float64 {
	if p.values[id] == nil {
		return nil
	}
	axis, last := make([]float64, len(p.times)), 0.0
	for i, value := range p.values[id] {
		if value == value {
			last = exact(value)
		}
		axis[i] = last
	}
	return axis
}

// thinned returns at most a number of points, means of as many neighbors. The
// numbers have six digits.
func (c ProfileCurve) thinned(most int) ProfileCurve {
	size := (len(c.Values) + most - 1) / most
	for _, list := range []*[]float64{&c.Elapsed, &c.Steps, &c.Epochs, &c.Values} {
		*list = Means(*list, max(1, size))
		for i, v := range *list {
			(*list)[i] = exact(float32(v))
		}
	}
	return c
}

// Means returns the means of each size values, the last of them of fewer.
func Means(values []float64, size int) (out []float64) {
	for part := range slices.Chunk(values, size) {
		out = append(out, meanOf(part))
	}
	return out
}
