package training

import (
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
)

// State is what goes on of a process when its collector starts again.
type State struct {
	Format   string    `json:"format"`
	Attempt  uint64    `json:"attempt,omitempty"`
	Step     int64     `json:"step,omitempty"`
	Interval int64     `json:"interval,omitempty"`
	Base     int64     `json:"base,omitempty"`
	InEpoch  int64     `json:"in_epoch,omitempty"`
	Epoch    float64   `json:"epoch,omitempty"`
	Total    float64   `json:"total,omitempty"`
	Elapsed  *float64  `json:"elapsed,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	From     time.Time `json:"from,omitzero"`
	End      time.Time `json:"end,omitzero"`
	Ended    bool      `json:"ended,omitempty"`
}

// State returns the state of a process that was seen to train.
func (p *Process) State() State {
	s := State{
		Format: p.format.Name, Attempt: p.attempt, Step: p.step, Interval: p.interval, Base: p.base, InEpoch: p.inEpoch,
		Total: p.total, Began: p.began, From: p.from, End: p.end, Ended: p.ended,
	}
	if finite(p.epoch) {
		s.Epoch = p.epoch
	}
	if finite(p.elapsed) {
		s.Elapsed = &p.elapsed
	}
	return s
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Restore makes a new process go on from a state.
func (p *Process) Restore(s *State, of *format.Format) {
	p.format, p.attempt, p.trace = of, s.Attempt, traceOf(p.key, s.Attempt)
	p.step, p.interval, p.base, p.inEpoch = max(s.Step, 0), max(s.Interval, 0), max(s.Base, 0), max(s.InEpoch, 0)
	p.epoch, p.total, p.began, p.from, p.end, p.ended = s.Epoch, s.Total, s.Began, s.From, s.End, s.Ended
	if s.Elapsed != nil {
		p.elapsed = *s.Elapsed
	}
}
