package wallclock

import (
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Phase is a part of training that a span can time.
type Phase uint8

// The phases that are told apart.
const (
	Forward Phase = iota
	Backward
	ForwardBackward
	Optimizer
	Batch
	Checkpoint
	Validation
	DataLoad

	phases

	// NoPhase is the phase of a span that times something else, and of the time of a step
	// without a span.
	NoPhase = phases
)

// phaseNames are the values of ml.phase.
var phaseNames = [phases + 1]string{
	Forward:         mlattr.PhaseForward,
	Backward:        mlattr.PhaseBackward,
	ForwardBackward: mlattr.PhaseForwardBackward,
	Optimizer:       mlattr.PhaseOptimizer,
	Batch:           mlattr.PhaseBatch,
	Checkpoint:      mlattr.PhaseCheckpoint,
	Validation:      mlattr.PhaseValidation,
	DataLoad:        mlattr.PhaseDataLoad,
	NoPhase:         "other",
}

// String returns the value of ml.phase.
func (p Phase) String() string { return phaseNames[p] }

// PhaseOf returns the phase with this value of ml.phase. It returns false for a
// phase that spans others, such as an epoch, and for work that is no training,
// such as sampling.
func PhaseOf(name string) (Phase, bool) {
	if p := slices.Index(phaseNames[:NoPhase], name); p >= 0 {
		return Phase(p), true // #nosec G115 -- an index of a short list
	}
	return NoPhase, false
}

// HasForward reports whether a span of the phase is a forward pass or contains
// one, so that an optimizer after it ends another step.
func (p Phase) HasForward() bool { return p == Forward || p == ForwardBackward || p == Batch }

// State is the use of a moment of a run's time.
type State uint8

// The states, those with a span first, from the one that wins where spans of
// several overlap.
const (
	Productive State = iota
	// Rework is a step that an earlier attempt of the run already did.
	Rework
	Checkpointing
	// Restoring is the reading of a checkpoint.
	Restoring
	Validating
	LoadingData
	// Queueing is the wait of requested work that has not begun.
	Queueing
	// Startup is the time before the first productive moment.
	Startup
	// Idle is time without a span of a run that works on demand, or that has a
	// span for all of its work.
	Idle
	// Other is time without a span of a running program.
	Other
	// Unknown is time of unknown use: no span arrived for so long that the
	// program may have hung, ended or lost its telemetry.
	Unknown

	states
)

// stateNames are the values of ml.run.state for the time of a run.
var stateNames = [states]string{
	Productive:    "productive",
	Rework:        "rework",
	Checkpointing: "checkpoint",
	Restoring:     "checkpoint_restore",
	Validating:    "validation",
	LoadingData:   "data_load",
	Queueing:      "queue",
	Startup:       "startup",
	Idle:          "idle",
	Other:         "other",
	Unknown:       "unknown",
}

// String returns the value of ml.run.state.
func (s State) String() string { return stateNames[s] }

// phaseStates are the uses of the times of phases, which are Productive but for these.
var phaseStates = [phases + 1]State{Checkpoint: Checkpointing, Validation: Validating, DataLoad: LoadingData}

// State returns the use of the time of a phase.
func (p Phase) State() State { return phaseStates[p] }

const (
	// windowSlots is the number of slots of a Window, and slotLength the time
	// that each of them covers.
	windowSlots = 15
	slotLength  = time.Minute
)

// Spent is time by State, in nanoseconds.
type Spent [states]int64

// Add adds the time of another Spent.
func (s *Spent) Add(other *Spent) {
	for state, nanoseconds := range other {
		s[state] += nanoseconds
	}
}

// Window has the time that a run spent during the last 15 minutes, by the time
// at which it was attributed. The zero Window is ready to use. It is not safe for
// concurrent use.
type Window struct {
	slots [windowSlots]struct {
		number int64
		spent  Spent
	}
	// ever reports for each state whether the run was ever in it.
	ever [states]bool
}

// Add adds time that was attributed at now.
func (w *Window) Add(spent *Spent, now time.Time) {
	number := now.UnixNano() / int64(slotLength)
	slot := &w.slots[uint64(number)%windowSlots] // #nosec G115 -- only the remainder matters
	if slot.number != number {
		slot.number, slot.spent = number, Spent{}
	}
	slot.spent.Add(spent)
	for state, nanoseconds := range spent {
		w.ever[state] = w.ever[state] || nanoseconds > 0
	}
}

// Ratios returns the fraction of the window in each state, -1 for a state that
// the run was never in. The others add up to 1. ok is false if no time was
// attributed.
func (w *Window) Ratios(now time.Time) (ratios [states]float64, ok bool) {
	newest := now.UnixNano() / int64(slotLength)
	var sum Spent
	for i := range w.slots {
		if slot := &w.slots[i]; slot.number > newest-windowSlots && slot.number <= newest {
			sum.Add(&slot.spent)
		}
	}
	total := shared.Sum(sum[:])
	if total <= 0 {
		return ratios, false
	}
	for state, nanoseconds := range sum {
		ratios[state] = float64(nanoseconds) / float64(total)
		if !w.ever[state] {
			ratios[state] = -1
		}
	}
	return ratios, true
}
