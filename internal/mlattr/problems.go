package mlattr

import (
	"cmp"
	"time"
)

// Severity says who should learn of a problem, and how fast.
type Severity string

// ProblemOf is what a problem is a problem of.
type ProblemOf string

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
	// Next says what to do next, unless what was found says more.
	Next string
}

// EndsAfter returns for how long a problem of the kind lasts without new evidence.
func (k *ProblemKind) EndsAfter() time.Duration { return cmp.Or(k.Lasts, time.Hour) }

// problemByName is an index of Problems.
var problemByName = Index(Problems, func(kind *ProblemKind) string { return kind.Name })

// ProblemNamed returns the kind of problem with that name. ok is false if there is
// none.
func ProblemNamed(name string) (kind ProblemKind, ok bool) {
	known, ok := problemByName[name]
	if !ok {
		return ProblemKind{}, false
	}
	return *known, true
}

// Hangs are the kinds of which the processes of a run wait.
func Hangs() []string { return []string{ProblemLooksHung, ProblemRankMissing} }
