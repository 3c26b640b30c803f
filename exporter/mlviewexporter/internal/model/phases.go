package model

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// wholeStep is the ml.phase of the duration of a whole step.
const wholeStep = "step"

// phaseTime is the time of a phase in the last five minutes, of all ranks together.
type phaseTime struct{ sum, steps float64 }

// phaseTimes are the times of the phases of a run, and of its whole step.
type phaseTimes map[string]*phaseTime

func (p phaseTimes) add(one *stream, sum, steps float64) {
	t := p[one.labels.Own[0]]
	if t == nil {
		t = new(phaseTime)
		p[one.labels.Own[0]] = t
	}
	t.sum, t.steps = t.sum+sum, t.steps+steps
}

// stepDurations returns the streams of the times of steps and phases. Times of
// the host count where there are some.
func (r *runStreams) stepDurations() iter.Seq[*stream] {
	onHost := slices.ContainsFunc(r.durations, func(one *stream) bool { return one.labels.Own[1] != "device" })
	return func(yield func(*stream) bool) {
		for _, one := range r.durations {
			if (!onHost || one.labels.Own[1] != "device") && !yield(one) {
				return
			}
		}
	}
}

// phaseTimes returns the time of each phase, and of the whole step.
func (r *runStreams) phaseTimes(now time.Time) phaseTimes {
	times := make(phaseTimes)
	for one := range r.stepDurations() {
		sum, steps, ok := one.increase(now)
		if !ok {
			continue
		}
		times.add(one, sum, steps)
	}
	return times
}

// phases returns the phases of the steps of a run, the longest first.
func (r *runStreams) phases(now time.Time) []Phase {
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

// timeRatio returns ml.run.time.ratio.
func (r *runStreams) timeRatio(now time.Time) map[string]float64 {
	ratio := make(map[string]float64)
	for _, one := range r.ratios {
		if one.live(now) && r.written(one) {
			ratio[one.labels.Own[0]] = one.value
		}
	}
	if len(ratio) == 0 {
		return nil
	}
	return ratio
}
