package mlattr

import "slices"

// countedBy has the values by which spans are counted.
var countedBy = map[string][]string{
	Phase: {
		PhaseTrain, PhaseForward, PhaseBackward, PhaseOptimizer, PhaseForwardBackward, PhaseDataLoad, PhaseValidation, PhaseEpoch,
		PhaseBatch, PhaseCheckpoint, PhaseSample,
	},
	Side: {SideClient, SideServer, SideGateway},
}

// CountedBy reports whether spans are counted by this value of an attribute. There are few
// such values, so that they are never beyond a limit.
func CountedBy(key, value string) bool { return slices.Contains(countedBy[key], value) }

const (
	// Other is the value of a label that replaces values beyond a limit, as the
	// semantic conventions spell it.
	Other = "_OTHER"
	// Identity is an attribute of a resource or span whose run ml_guard does not show: a
	// hash of its service, run, rank and host, by which ml_metrics counts, and which it does
	// not show either.
	Identity = "ml.identity"
)
