package training

import (
	"math"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
)

// State is what goes on of a process when its collector starts again.
type State struct {
	// Format is the name of the newest format, and Attempt counts restarts.
	Format  string `json:"format"`
	Attempt uint64 `json:"attempt,omitempty"`
	// Step is the number of the newest step, 0 if unknown, and Interval the number of steps
	// of the newest line. In formats that number the steps of an epoch, Base is the number
	// of steps before the epoch and InEpoch the newest number within it.
	Step     int64   `json:"step,omitempty"`
	Interval int64   `json:"interval,omitempty"`
	Base     int64   `json:"base,omitempty"`
	InEpoch  int64   `json:"in_epoch,omitempty"`
	Epoch    float64 `json:"epoch,omitempty"`
	// Total is that of the bars of the training, 0 if unknown.
	Total float64 `json:"total,omitempty"`
	// Elapsed is the time that the program states for the newest step, nil if none.
	Elapsed *float64 `json:"elapsed,omitempty"`
	// Began is when the training began, as far as the lines say. End is the end of the
	// newest step, and From when the next one may have begun.
	Began time.Time `json:"began,omitzero"`
	From  time.Time `json:"from,omitzero"`
	End   time.Time `json:"end,omitzero"`
	Ended bool      `json:"ended,omitempty"`
}

// Kept returns the state of a process that was seen to train.
func (p *Process) Kept() State {
	s := p.State
	s.Format = p.format.Name
	if !finite(s.Epoch) {
		s.Epoch = 0
	}
	if finite(p.elapsed) {
		s.Elapsed = &p.elapsed
	}
	return s
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Restore makes a new process go on from a state.
func (p *Process) Restore(s *State, of *format.Format) {
	p.State, p.format, p.trace = *s, of, traceOf(p.key, s.Attempt)
	p.Step, p.Interval, p.Base, p.InEpoch = max(s.Step, 0), max(s.Interval, 0), max(s.Base, 0), max(s.InEpoch, 0)
	if s.Elapsed != nil {
		p.elapsed = *s.Elapsed
	}
}
