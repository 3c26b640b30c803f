package runs

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/curves"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// timeline is what is kept of the numbers of a run.
type timeline struct {
	Curves curves.Set
	last   lastNumbers
	Spent  spentTime
	// due is since when there are numbers that the curves do not have, zero for none.
	due time.Time
	// ratesOver is the time in seconds that the rates of tokens and samples cover.
	ratesOver float64
}

// lastNumbers has the last losses of a run.
type lastNumbers struct {
	// steps is the sum of the times of the last steps of all ranks, and stepped when
	// the page learnt of the newest one.
	steps   float64
	stepped time.Time
	// loss is that of the newest step, validation the newest one, nil if unknown.
	loss, validation *float64
}

// noteLast takes over the numbers of a run that the page learnt of at r.due. It learns of a
// step after it, and a sender has a clock of its own, so the time of the last step does not
// tell which numbers are of it.
func (r *Run) noteLast(row *api.Run) {
	steps := 0.0
	for _, one := range r.streams {
		if one.Series == series.LastStep {
			steps += one.Value
		}
	}
	if row.ValidationLoss != nil {
		r.last.validation = row.ValidationLoss
	}
	if steps == 0 || steps != r.last.steps {
		r.last.steps, r.last.stepped, r.last.loss = steps, r.due, row.Loss
	}
}

// StepsEnd returns when the numbers of steps end, in Unix seconds: with the last step
// of a run in a state in which it takes none any more, else never.
func (r *Run) StepsEnd(state string) int64 {
	switch state {
	case mlattr.RunStalled, mlattr.RunSilent, mlattr.RunFailed, mlattr.RunEnded:
		if r.last.steps != 0 {
			return r.last.stepped.Unix()
		}
	}
	return math.MaxInt64
}

// Record adds the numbers of the runs that have had new ones for an interval to
// their curves.
func (s *Set) Record(now time.Time) {
	early := func(r *Run) bool { return !r.due.IsZero() && now.Sub(r.due) < s.settings.Interval }
	if len(s.due) == 0 || early(s.due[0]) {
		return
	}
	s.HoldGPUs(now)
	n := 0
	for ; n < len(s.due) && !early(s.due[n]); n++ {
		r := s.due[n]
		if r.due.IsZero() {
			continue
		}
		var row api.Run
		r.AddNumbers(&row, now)
		v := r.numbers(&row)
		r.Curves.Add(r.due, &v, s.settings.Interval, s.settings.History)
		r.noteLast(&row)
		r.noteHardware()
		r.spend(&row, r.due)
		r.keepGood(now)
		r.due = time.Time{}
	}
	s.due = slices.Delete(s.due, 0, n)
}

// numbers returns the numbers of a run that are kept over time.
func (r *Run) numbers(row *api.Run) (v curves.Values) {
	for i := range v {
		v[i] = float32(math.NaN())
	}
	for id, value := range [curves.Count]*float64{
		curves.Loss: row.Loss, curves.StepTime: row.StepTime, curves.TokenRate: row.TokenRate,
		curves.Goodput: row.Goodput, curves.Utilization: row.GPUUtilization, curves.Validation: row.ValidationLoss,
		curves.LearningRate: row.LearningRate, curves.SampleRate: row.SampleRate, curves.Steps: row.Steps, curves.Epoch: row.Epoch,
	} {
		if value != nil {
			v[id] = float32(*value)
		}
	}
	// What senders held back at the start would count as if it were fast.
	if r.ratesOver > 0 && r.ratesOver < series.RateWindow/2 {
		v[curves.TokenRate], v[curves.SampleRate] = float32(math.NaN()), float32(math.NaN())
	}
	var memory, power series.Total
	for _, held := range r.GPUs {
		if held.silent {
			continue
		}
		memory.Add(held.memory)
		if watts := held.GPU.Number(series.GPUPower); watts != nil {
			power.Add(*watts * held.Share)
		}
	}
	if memory.N > 0 {
		v[curves.Memory] = float32(memory.Sum)
	}
	if power.N > 0 {
		v[curves.Power] = float32(power.Sum)
	}
	return v
}

// ratioWindow is the time that ml.run.time.ratio covers, in seconds.
const ratioWindow = 15 * 60

// spentTime adds up what the time of a run goes to.
type spentTime struct {
	api.Spent
	// last is when time was added last, from when the ratio begins to count, both in
	// Unix seconds. ratio is the last one.
	last, from uint32
	ratio      map[string]float64
}

// spend adds the time until now to the run's current state.
func (r *Run) spend(row *api.Run, now time.Time) {
	s, at := &r.Spent, uint32(now.Unix())
	if s.last == 0 || at < s.last {
		s.last, s.from = at, at
		return
	}
	state := r.CurrentState(now)
	if mlattr.RunOver(state) {
		return
	}
	took := min(float64(at-s.last), series.GoneAfter.Seconds())
	s.last = at
	if s.States == nil {
		s.States = make(map[string]float64)
	}
	s.States[state] += took
	if row.GPUs != nil {
		s.GPUHours = api.Finite(took**row.GPUs/3600 + api.Value(s.GPUHours))
	}
	if row.GPUPrice != nil {
		s.GPUCost = api.Finite(took**row.GPUPrice/3600 + api.Value(s.GPUCost))
	}
	if ratio := r.TimeRatio(now); ratio != nil {
		s.ratio = ratio
	}
	if at-s.from >= ratioWindow {
		s.Uses, s.from = s.uses(), at
	}
}

// uses returns the seconds by use until now.
func (s *spentTime) uses() map[string]float64 {
	all := maps.Clone(s.Uses)
	if all == nil {
		all = make(map[string]float64)
	}
	for use, ratio := range s.ratio {
		if seconds := ratio * float64(s.last-s.from); seconds > 0 {
			all[use] += seconds
		}
	}
	return all
}

// Row returns a copy of what is known.
func (s *spentTime) Row() api.Spent {
	return api.Spent{States: maps.Clone(s.States), Uses: s.uses(), GPUHours: s.GPUHours, GPUCost: s.GPUCost}
}
