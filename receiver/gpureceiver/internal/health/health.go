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

// states are the states by the worst effect of what is known.
var states = map[xid.Effect]State{xid.None: OK, xid.Predicts: PredictedFailure, xid.Degrades: Degraded, xid.Fails: Failed}

// Judge returns the worst state that the evidence supports. The driver's present
// state takes precedence over past errors: if the recovery action is known, even
// as none, errors do not count. Otherwise the flags of row remapping take
// precedence over the errors about it.
func Judge(e Evidence) State {
	worst := xid.None
	if e.RemapPending.Value != 0 {
		worst = xid.Predicts
	}
	switch {
	case e.Lost || e.Unresponsive || e.RemapFailed.Value != 0:
		worst = xid.Fails
	case e.RecoveryAction.Known:
		worst = max(worst, xid.AfterAction(e.RecoveryAction.Value))
	default:
		for _, of := range e.Errors {
			if of.Code == xidRemapped && e.RemapPending.Known || of.Code == xidNotRemapped && e.RemapFailed.Known {
				continue
			}
			worst = max(worst, of.Effect)
		}
	}
	return states[worst]
}

// The errors that correspond to the flags of row remapping.
const (
	xidRemapped    = 63
	xidNotRemapped = 64
)
