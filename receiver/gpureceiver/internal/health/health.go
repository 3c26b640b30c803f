// Package health judges a GPU by what is known about it.
package health

import (
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// State is the health of a GPU. The values are those of the attribute hw.state.
type State string

// The states.
const (
	// OK means that there is no evidence against the GPU.
	OK State = "ok"
	// PredictedFailure means that it works, and that a part of it has failed or
	// is expected to.
	PredictedFailure State = "predicted_failure"
	// Degraded means that it works with less, has lost data, or that its jobs
	// should move to another GPU.
	Degraded State = "degraded"
	// Failed means that it does not work, or needs a reset to work again.
	Failed State = "failed"
)

// States lists every state in the order of reports.
var States = []State{OK, Degraded, Failed, PredictedFailure}

// Evidence is what is known about a GPU.
type Evidence struct {
	// Lost is true if the GPU fell off the bus.
	Lost bool
	// Unresponsive is true if the GPU does not answer.
	Unresponsive bool
	// RecoveryAction is the action that the driver asks for.
	RecoveryAction device.Number
	// RemapPending and RemapFailed are the flags of row remapping, 1 for true.
	RemapPending, RemapFailed device.Number
	// Errors are its recent errors.
	Errors []Error
}

// Error is an error of a GPU.
type Error struct {
	// Code is the XID.
	Code uint64
	// Effect is its effect on the GPU.
	Effect xid.Effect
}

// Judge returns the worst state that the evidence supports. The driver's present
// state takes precedence over past errors: if the recovery action is known, even
// as none, errors do not count. Otherwise the flags of row remapping take
// precedence over the errors about it.
func Judge(e Evidence) State {
	if e.Lost || e.Unresponsive || e.RemapFailed.Value != 0 {
		return Failed
	}
	worst := OK
	if e.RemapPending.Value != 0 {
		worst = PredictedFailure
	}
	if e.RecoveryAction.Known {
		return worse(worst, afterAction(e.RecoveryAction.Value))
	}
	for _, of := range e.Errors {
		if of.Code == xidRemapped && e.RemapPending.Known || of.Code == xidNotRemapped && e.RemapFailed.Known {
			continue
		}
		worst = worse(worst, afterError(of.Effect))
	}
	return worst
}

// The errors that correspond to the flags of row remapping.
const (
	xidRemapped    = 63
	xidNotRemapped = 64
)

// afterAction returns the state for a recovery action. An unknown action is still
// an action to take.
func afterAction(action float64) State {
	switch action {
	case device.RecoveryNone:
		return OK
	case device.RecoveryGPUReset, device.RecoveryNodeReboot:
		return Failed
	}
	return Degraded
}

func afterError(effect xid.Effect) State {
	switch effect {
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
