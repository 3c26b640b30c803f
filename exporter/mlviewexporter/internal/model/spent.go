package model

import (
	"maps"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// ratioWindow is the time that ml.run.time.ratio covers, in seconds.
const ratioWindow = 15 * 60

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

// spentTime adds up what the time of a run goes to.
type spentTime struct {
	Spent
	// last is when time was added last, from when the ratio begins to count, both in
	// Unix seconds. ratio is the last one.
	last, from uint32
	ratio      map[string]float64
}

// spend adds the time until now to the run's current state.
func (r *run) spend(row *Run, now time.Time) {
	s, at := &r.spent, uint32(now.Unix())
	if s.last == 0 || at < s.last {
		s.last, s.from = at, at
		return
	}
	state := r.currentState(now)
	if mlattr.RunOver(state) {
		return
	}
	took := min(float64(at-s.last), goneAfter.Seconds())
	s.last = at
	if s.States == nil {
		s.States = make(map[string]float64)
	}
	s.States[state] += took
	if row.GPUs != nil {
		s.GPUHours = finite(took**row.GPUs/3600 + number0(s.GPUHours))
	}
	if row.GPUPrice != nil {
		s.GPUCost = finite(took**row.GPUPrice/3600 + number0(s.GPUCost))
	}
	if ratio := r.timeRatio(now); ratio != nil {
		s.ratio = ratio
	}
	if at-s.from >= ratioWindow {
		s.Uses, s.from = s.uses(), at
	}
}

func number0(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
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

// row returns a copy of what is known.
func (s *spentTime) row() Spent {
	return Spent{States: maps.Clone(s.States), Uses: s.uses(), GPUHours: s.GPUHours, GPUCost: s.GPUCost}
}
