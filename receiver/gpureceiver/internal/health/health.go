// Package health judges a GPU by what is known about it.
package health

import (
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// State is how a GPU is. The values are those of the attribute hw.state.
type State string

// The states.
const (
	// OK means that nothing speaks against the GPU.
	OK State = "ok"
	// PredictedFailure means that it works, and that a part of it has failed
	// or will.
	PredictedFailure State = "predicted_failure"
	// Degraded means that it works with less, has lost data, or that its jobs
	// have to be moved away.
	Degraded State = "degraded"
	// Failed means that it does not work, or that nothing but a reset makes
	// it work again.
	Failed State = "failed"
)

// States lists every state, in the order in which they are reported.
var States = []State{OK, Degraded, Failed, PredictedFailure}

// Evidence is what is known about a GPU.
type Evidence struct {
	// Lost is true for one that fell off the bus.
	Lost bool
	// Unresponsive is true for one whose calls have not returned in time.
	Unresponsive bool
	// RecoveryAction is what the driver says has to be done.
	RecoveryAction device.Number
	// RemapPending and RemapFailed are of its memory's rows.
	RemapPending device.Flag
	RemapFailed  device.Flag
	// XIDs are the codes of its recent errors.
	XIDs []uint64
}

// Judge returns the worst that the evidence says. What the driver says about
// the present wins over errors that it reported before: with a recovery
// action, also with none, past errors do not count, and without one the flags
// of row remapping win over the errors that are about the same.
func Judge(e Evidence) State {
	if e.Lost || e.Unresponsive || e.RemapFailed.Value {
		return Failed
	}
	worst := OK
	if e.RemapPending.Value {
		worst = PredictedFailure
	}
	if e.RecoveryAction.Known {
		return worse(worst, afterAction(e.RecoveryAction.Value))
	}
	for _, code := range e.XIDs {
		if code == xidRemapped && e.RemapPending.Known || code == xidNotRemapped && e.RemapFailed.Known {
			continue
		}
		worst = worse(worst, afterError(code))
	}
	return worst
}

// The errors that say the same as the flags of row remapping.
const (
	xidRemapped    = 63
	xidNotRemapped = 64
)

// afterAction says what a recovery action means. One that this version does
// not know is still something that has to be done.
func afterAction(action float64) State {
	switch action {
	case device.RecoveryNone:
		return OK
	case device.RecoveryGPUReset, device.RecoveryNodeReboot:
		return Failed
	}
	return Degraded
}

func afterError(code uint64) State {
	switch xid.Of(code).Effect {
	case xid.Fails:
		return Failed
	case xid.Degrades:
		return Degraded
	case xid.Predicts:
		return PredictedFailure
	}
	return OK
}

// worse returns the worse of two states.
func worse(a, b State) State {
	for _, state := range []State{Failed, Degraded, PredictedFailure} {
		if a == state || b == state {
			return state
		}
	}
	return OK
}
