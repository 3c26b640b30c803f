package model

import (
	"cmp"
	"slices"
	"time"
)

// wholeStep is the ml.phase of the duration of a whole step.
const wholeStep = "step"

// phaseTime is the time of a phase, of all ranks together.
type phaseTime struct {
	// sum and steps are those of the last five minutes, before and stepsBefore
	// those of the time before.
	sum, steps          float64
	before, stepsBefore float64
	// ranks are those whose phase takes longer than usual, of all.
	slower, ranks int
}

// phaseTimes returns the time of each phase, and of the whole step. Times of the
// host count where there are some.
func (r *run) phaseTimes(now time.Time) map[string]*phaseTime {
	onHost := slices.ContainsFunc(r.streams, func(one *stream) bool {
		return one.series == StepDuration && one.labels.Own[1] != "device"
	})
	times := make(map[string]*phaseTime)
	for _, one := range r.streams {
		if one.series != StepDuration || onHost && one.labels.Own[1] == "device" {
			continue
		}
		sum, steps, ok := one.increase(now)
		if !ok {
			continue
		}
		t := times[one.labels.Own[0]]
		if t == nil {
			t = new(phaseTime)
			times[one.labels.Own[0]] = t
		}
		t.sum, t.steps = t.sum+sum, t.steps+steps
		first, _ := one.recent.first()
		t.before, t.stepsBefore = t.before+first.value, t.stepsBefore+first.count
		t.ranks++
		if steps > 0 && first.count > 0 && sum/steps > slowerThan*first.value/first.count {
			t.slower++
		}
	}
	return times
}

// slowerThan is how much longer than usual a phase must take to be named.
const slowerThan = 1.3

// phases returns the phases of the steps of a run, the longest first.
func (r *run) phases(now time.Time) []Phase {
	rows := []Phase{}
	times := r.phaseTimes(now)
	whole := times[wholeStep]
	for phase, t := range times {
		row := Phase{Phase: phase}
		if steps := stepsOf(t, whole); steps > 0 {
			row.SecondsPerStep = finite(t.sum / steps)
		}
		if whole != nil && whole.sum > 0 {
			row.Share = finite(t.sum / whole.sum)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Phase) int {
		return cmp.Or(cmp.Compare(seconds(b), seconds(a)), cmp.Compare(a.Phase, b.Phase))
	})
	// The whole step is first, also if phases overlap.
	if at := slices.IndexFunc(rows, func(p Phase) bool { return p.Phase == wholeStep }); at > 0 {
		step := rows[at]
		copy(rows[1:at+1], rows[:at])
		rows[0] = step
	}
	return rows
}

// stepsOf returns the number of steps that a phase is a part of: not every step
// has a checkpoint.
func stepsOf(t, whole *phaseTime) float64 {
	if whole != nil {
		return whole.steps
	}
	return t.steps
}

func seconds(p Phase) float64 {
	if p.SecondsPerStep == nil {
		return 0
	}
	return *p.SecondsPerStep
}
