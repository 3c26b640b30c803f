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

// Error is an error of a GPU.
type Error struct {
	// Code is the XID.
	Code uint64
	// Effect is its effect on the GPU.
	Effect xid.Effect
}

// states are the states by the worst effect of what is known.
var states = map[xid.Effect]State{xid.None: OK, xid.Predicts: PredictedFailure, xid.Degrades: Degraded, xid.Fails: Failed}

// Judge returns the worst state of a GPU that its readings and its recent errors
// support. The driver's present state takes precedence over past errors: if the
// recovery action is known, even as none, errors do not count. Otherwise the flags of
// row remapping take precedence over the errors about it.
func Judge(gpu *device.GPU, recent []Error) State {
	action := device.RecoveryAction.Of(&gpu.Readings)
	pending, failed := device.RemapPending.Of(&gpu.Readings), device.RemapFailed.Of(&gpu.Readings)
	worst := xid.None
	if pending.Value != 0 {
		worst = xid.Predicts
	}
	switch {
	case gpu.Lost || gpu.Unresponsive || failed.Value != 0:
		worst = xid.Fails
	case action.Known:
		worst = max(worst, xid.AfterAction(action.Value))
	default:
		for _, of := range recent {
			if of.Code == xidRemapped && pending.Known || of.Code == xidNotRemapped && failed.Known {
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
