package mlattr

import (
	"cmp"
	_ "embed"
	"time"
)

// Problem is the kind of a problem on its series, and the event name of the log
// records about one. Its values are the constants of generated_problems.go.
const Problem = "ml.problem"

// Attributes of log records about problems.
const (
	// ProblemID identifies a problem from its beginning to its end.
	ProblemID = "ml.problem.id"
	// ProblemState is ProblemBegan, ProblemUpdated, ProblemStale or ProblemEnded.
	ProblemState = "ml.problem.state"
	// ProblemSeverity is one of the Severity values.
	ProblemSeverity = "ml.problem.severity"
	// ProblemOnset is when the problem began, ProblemDetected when ml_metrics
	// first knew of it, in seconds since 1970.
	ProblemOnset    = "ml.problem.onset"
	ProblemDetected = "ml.problem.detected"
	// ProblemEvidenceTime is when the newest data that shows the problem arrived, in
	// seconds since 1970.
	ProblemEvidenceTime = "ml.problem.evidence.time"
	// ProblemEndReason is why the problem has ended: ProblemOver or
	// ProblemNoEvidence.
	ProblemEndReason = "ml.problem.end.reason"
	// ProblemValue is what was observed, ProblemUsual what it was before, both in
	// ProblemUnit, a UCUM unit.
	ProblemValue = "ml.problem.value"
	ProblemUsual = "ml.problem.usual"
	ProblemUnit  = "ml.problem.unit"
	// ProblemWindow is the time in seconds that ProblemValue covers, ProblemCount
	// the number of observations in it.
	ProblemWindow = "ml.problem.window"
	ProblemCount  = "ml.problem.count"
	// ProblemEvidence has short phrases, ProblemExcluded what was taken out before
	// the comparison, ProblemBefore the changes before the onset, the newest first.
	ProblemEvidence = "ml.problem.evidence"
	ProblemExcluded = "ml.problem.excluded"
	ProblemBefore   = "ml.problem.before"
	// ProblemTelemetry is the fraction of the expected telemetry that arrived.
	ProblemTelemetry = "ml.problem.telemetry.ratio"
	// ProblemGPUs is the number of GPUs that the problem keeps from work, of one that slows
	// a run down a part of them, and ProblemGPUHours the hours of GPUs that it has taken so
	// far. ProblemHeld are the GPUs concerned, at most 64, each a HostName, a slash and a
	// HardwareID.
	ProblemGPUs     = "ml.problem.gpus"
	ProblemGPUHours = "ml.problem.gpu_hours"
	ProblemHeld     = "ml.problem.gpu.ids"
	// ProblemNext is what to do next.
	ProblemNext = "ml.problem.next"
	// ProblemCause is the ProblemID of the problem that this one follows from.
	ProblemCause = "ml.problem.cause"
)

// Values of ProblemState.
const (
	ProblemBegan = "began"
	// ProblemUpdated is that of a problem that lasts and whose evidence has changed.
	ProblemUpdated = "updated"
	// ProblemStale is that of a problem that lasts without new evidence.
	ProblemStale = "stale"
	ProblemEnded = "ended"
)

// Values of ProblemEndReason.
const (
	// ProblemOver: newer data no longer shows the problem.
	ProblemOver = "over"
	// ProblemNoEvidence: for ProblemKind.EndsAfter no data has shown it, and none
	// has shown that it is over.
	ProblemNoEvidence = "no_evidence"
)

// Severity says who should learn of a problem, and how fast.
type Severity string

// The severities. A problem that is only a mark has no series, and asks nobody
// to act.
const (
	SeverityPage   Severity = "page"
	SeverityTicket Severity = "ticket"
	SeverityMark   Severity = "mark"
)

// ProblemOf is what a problem is a problem of.
type ProblemOf string

// The values of ProblemOf.
const (
	OfRun     ProblemOf = "run"
	OfService ProblemOf = "service"
	OfGPU     ProblemOf = "gpu"
	OfHost    ProblemOf = "host"
)

// ProblemKind describes a kind of problem.
type ProblemKind struct {
	// Name is the value of Problem, Constant the name of its constant here, and Title the
	// same in words.
	Name, Constant, Title string
	Severity              Severity
	Of                    ProblemOf
	// Moment reports whether the problem ends when it begins.
	Moment bool
	// FromSilence reports whether the problem is concluded from what did not arrive:
	// while telemetry is refused or lost on its way, it may be none.
	FromSilence bool `yaml:"from_silence"`
	// Lasts is for how long the problem lasts without new evidence, 0 meaning an
	// hour; Calm for how long newer data must not show it until it ends, 0 meaning
	// that it ends at once.
	Lasts, Calm time.Duration
	// Follows are the kinds that a problem of this kind follows from, the most likely
	// first.
	Follows []string
	// EndsUnreported reports whether a problem is over as soon as it is not reported: no
	// newer data of what has it can show that it is.
	EndsUnreported bool `yaml:"ends_unreported"`
	// Description is one sentence: the rule with its figures.
	Description string
	// Method cites the method of the rule, or is "".
	Method string
}

// EndsAfter returns for how long a problem of the kind lasts without new evidence.
func (k *ProblemKind) EndsAfter() time.Duration { return cmp.Or(k.Lasts, time.Hour) }

//go:embed problems.yaml
var problemsText []byte

// Problems has the kinds of problems that ml_metrics concludes: pages first, then
// tickets and marks.
var Problems = Embedded[[]ProblemKind](problemsText)

// problemByName is an index of Problems.
var problemByName = func() map[string]*ProblemKind {
	index := make(map[string]*ProblemKind, len(Problems))
	for i := range Problems {
		index[Problems[i].Name] = &Problems[i]
	}
	return index
}()

// ProblemNamed returns the kind of problem with that name. ok is false if there is
// none.
func ProblemNamed(name string) (kind ProblemKind, ok bool) {
	known, ok := problemByName[name]
	if !ok {
		return ProblemKind{}, false
	}
	return *known, true
}
