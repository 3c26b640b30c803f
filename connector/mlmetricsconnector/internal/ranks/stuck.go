package ranks

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxStuck limits the ranks of a run that are kept.
const maxStuck = 64

// reasons has the states of ranks that keep others waiting, the gravest first, and
// what is said about them.
var reasons = [...]struct{ state, text string }{
	{mlattr.NCCLDead, "is dead"},
	{mlattr.NCCLUnresponsive, "does not respond"},
	{mlattr.NCCLMissing, "does not have the communicator"},
	{mlattr.NCCLBehind, "has launched fewer operations than the others"},
}

// Stuck is a rank that the others wait for, as NCCL says.
type Stuck struct {
	// Number is its global rank, and Address that of its host, "" if unknown.
	Number, Address string
	// gravity is the index of its state in reasons.
	gravity int
}

// Reason says what is wrong with the rank.
func (s *Stuck) Reason() string { return reasons[s.gravity].text }

// Behind reports whether the process of the rank responds, and does something else.
func (s *Stuck) Behind() bool { return reasons[s.gravity].state == mlattr.NCCLBehind }

// Answers is what NCCL says about the ranks of one run. The zero Answers is ready to
// use. It is not safe for concurrent use.
type Answers struct {
	at    time.Time
	stuck []Stuck
}

// Answer begins the answer of a time, which replaces earlier ones. It reports whether
// there is no later one.
func (a *Answers) Answer(at time.Time) bool {
	if at.After(a.at) {
		a.at, a.stuck = at, a.stuck[:0]
	}
	return at.Equal(a.at)
}

// Add adds a rank in a state to the present answer. Of a rank in several states, as
// of several communicators, the gravest is kept; another state has no effect.
func (a *Answers) Add(number, address, state string) {
	gravity := slices.IndexFunc(reasons[:], func(r struct{ state, text string }) bool { return r.state == state })
	if gravity < 0 || number == "" {
		return
	}
	for i := range a.stuck {
		if s := &a.stuck[i]; s.Number == number {
			s.gravity = min(s.gravity, gravity)
			return
		}
	}
	if len(a.stuck) < maxStuck {
		a.stuck = append(a.stuck, Stuck{number, address, gravity})
	}
}

// Stuck returns the ranks that the others wait for, the gravest first.
func (a *Answers) Stuck() []Stuck {
	sorted := slices.Clone(a.stuck)
	slices.SortStableFunc(sorted, func(a, b Stuck) int {
		return cmp.Or(cmp.Compare(a.gravity, b.gravity), cmp.Compare(len(a.Number), len(b.Number)), cmp.Compare(a.Number, b.Number))
	})
	return sorted
}
