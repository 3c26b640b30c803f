package model

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// timeline is what is kept of the numbers of a run.
type timeline struct {
	curves curves
	last   lastNumbers
	spent  spentTime
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
func (r *run) noteLast(row *Run) {
	steps := 0.0
	for _, one := range r.streams {
		if one.series == LastStep {
			steps += one.value
		}
	}
	if row.ValidationLoss != nil {
		r.last.validation = row.ValidationLoss
	}
	if steps == 0 || steps != r.last.steps {
		r.last.steps, r.last.stepped, r.last.loss = steps, r.due, row.Loss
	}
}

// stepsEnd returns when the numbers of steps end, in Unix seconds: with the last step
// of a run in a state in which it takes none any more, else never.
func (r *run) stepsEnd(state string) int64 {
	switch state {
	case mlattr.RunStalled, mlattr.RunSilent, mlattr.RunFailed, mlattr.RunEnded:
		if r.last.steps != 0 {
			return r.last.stepped.Unix()
		}
	}
	return math.MaxInt64
}

// record adds the numbers of the runs that have had new ones for an interval to
// their curves.
func (s *runs) record(now time.Time) {
	early := func(r *run) bool { return !r.due.IsZero() && now.Sub(r.due) < s.settings.Interval }
	if len(s.due) == 0 || early(s.due[0]) {
		return
	}
	s.holdGPUs(now)
	n := 0
	for ; n < len(s.due) && !early(s.due[n]); n++ {
		r := s.due[n]
		if r.due.IsZero() {
			continue
		}
		var row Run
		r.addNumbers(&row, now)
		v := r.numbers(&row)
		r.curves.add(r.due, &v, s.settings.Interval, s.settings.History)
		r.noteLast(&row)
		r.noteHardware()
		r.spend(&row, r.due)
		r.keepGood(now)
		r.due = time.Time{}
	}
	s.due = slices.Delete(s.due, 0, n)
}

// numbers returns the numbers of a run that are kept over time.
func (r *run) numbers(row *Run) (v values) {
	for i := range v {
		v[i] = float32(math.NaN())
	}
	for id, value := range [curveCount]*float64{
		curveLoss: row.Loss, curveStepTime: row.StepTime, curveTokenRate: row.TokenRate,
		curveGoodput: row.Goodput, curveUtilization: row.GPUUtilization, curveValidation: row.ValidationLoss,
		curveLearningRate: row.LearningRate, curveSampleRate: row.SampleRate, curveSteps: row.Steps, curveEpoch: row.Epoch,
	} {
		if value != nil {
			v[id] = float32(*value)
		}
	}
	// What senders held back at the start would count as if it were fast.
	if r.ratesOver > 0 && r.ratesOver < rateWindow/2 {
		v[curveTokenRate], v[curveSampleRate] = float32(math.NaN()), float32(math.NaN())
	}
	var memory, power total
	for _, held := range r.gpus {
		if held.silent {
			continue
		}
		memory.add(held.memory)
		if watts := held.gpu.number(GPUPower); watts != nil {
			power.add(*watts * held.share)
		}
	}
	if memory.n > 0 {
		v[curveMemory] = float32(memory.sum)
	}
	if power.n > 0 {
		v[curvePower] = float32(power.sum)
	}
	return v
}
