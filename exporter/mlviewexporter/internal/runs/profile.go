package runs

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/compare"
)

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
	p.MakeLists()
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
	whole := times[WholeStep]
	rows := []api.RunNumber{}
	for phase, t := range times {
		if steps := stepsOf(t, whole); steps > 0 {
			if mean := api.Finite(t.sum / steps); mean != nil {
				rows = append(rows, api.RunNumber{Name: phase, Unit: "s", Value: *mean})
			}
		}
	}
	slices.SortFunc(rows, func(a, b api.RunNumber) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// addNumbers adds the numbers of the whole run: totals, the last losses, and medians,
// means and the least or largest values of the curves.
func addNumbers(p *api.Profile, last *lastNumbers, spent api.Spent) {
	add := func(name, unit string, v *float64) {
		if v != nil {
			p.Numbers = append(p.Numbers, api.RunNumber{Name: name, Unit: unit, Value: *v})
		}
	}
	end := p.Run.LastSeen
	if p.Run.LastStep != nil {
		end = *p.Run.LastStep
	}
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
		name, curve, unit string
		compute           func([]float64) float64
	}{
		{"loss_least", "loss", "", slices.Min[[]float64]},
		{"learning_rate_most", "learning_rate", "", slices.Max[[]float64]},
		{"step_time_median", "step_time", "s", medianOf},
		{"token_rate_median", "token_rate", "{token}/s", medianOf},
		{"sample_rate_median", "sample_rate", "{sample}/s", medianOf},
		{"goodput_mean", "goodput", "1", compare.MeanOf},
		{"gpu_utilization_median", "gpu_utilization", "1", medianOf},
		{"gpu_memory_most", "gpu_memory", "By", slices.Max[[]float64]},
		{"power_median", "power", "W", medianOf},
	} {
		if c := p.Curve(of.curve); c != nil {
			add(of.name, of.unit, api.Finite(of.compute(c.Values)))
		}
	}
	add("gpu_hours", "h", spent.GPUHours)
	add("errors", "{error}", p.Run.Errors)
	add("attempts", "{attempt}", p.Run.Attempts)
}

// medianOf returns the median of values.
func medianOf(values []float64) float64 { return compare.Median(slices.Clone(values)) }

// thinned returns at most a number of points, means of as many neighbors. The
// numbers have six digits.
func thinned(c api.ProfileCurve, most int) api.ProfileCurve {
	size := (len(c.Values) + most - 1) / most
	for _, list := range []*[]float64{&c.Elapsed, &c.Steps, &c.Epochs, &c.Values} {
		*list = compare.Means(*list, max(1, size))
		for i, v := range *list {
			(*list)[i] = api.Exact(float32(v))
		}
	}
	return c
}
