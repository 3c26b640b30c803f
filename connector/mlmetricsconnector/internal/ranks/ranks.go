// Package ranks compares the ranks of a run: which of them are missing, and which
// hosts have slow ones.
package ranks

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/flightrecorder"
)

// Rank is one rank of a run.
type Rank struct {
	// Number is its global rank, negative if unknown.
	Number int
	// Alive is when its newest span arrived, Stepped when its newest step ended.
	Alive, Stepped time.Time
	// Resumed is when the rank went on after its latest silence of half of its Patience,
	// zero if there was none.
	Resumed time.Time
	// Silent reports whether no span has arrived for Patience.
	Silent   bool
	Patience time.Duration
	// Gone reports whether the rank has ended, or is no longer one of the run.
	Gone bool
}

// Stopped returns the indexes of the ranks that have stopped while others go on: a
// rank has ended a step when they had been silent for half of their patience. In a
// run that hangs, all ranks wait for the one that stopped within a step. After a pause of
// all, a rank goes on once it has for half of its patience: the first steps of the others
// may not have arrived yet. few reports whether they are no more than half of the ranks:
// of more, the telemetry may be cut off.
func Stopped(all []Rank) (stopped []int, few bool) {
	var newest time.Time
	present := 0
	for i := range all {
		if rank := &all[i]; !rank.Gone {
			present++
			if rank.Stepped.After(newest) && (rank.Resumed.IsZero() || rank.Stepped.Sub(rank.Resumed) >= rank.Patience/2) {
				newest = rank.Stepped
			}
		}
	}
	for i := range all {
		if rank := &all[i]; !rank.Gone && rank.Silent && newest.Sub(rank.Alive) >= rank.Patience/2 {
			stopped = append(stopped, i)
		}
	}
	return stopped, 2*len(stopped) <= present
}

// maxAbsent limits the ranks that Absent returns.
const maxAbsent = 64

// Absent returns how many ranks of a world have never sent anything, and the
// lowest of their numbers. It returns none unless more than half of the ranks
// have sent: the client may send from one rank only, or from one rank of each
// host, and the collector may receive from one host of two.
func Absent(all []Rank, world int) (n int, lowest []int) {
	seen := make(map[int]bool, len(all))
	for i := range all {
		if number := all[i].Number; number >= 0 && number < world {
			seen[number] = true
		}
	}
	if n = world - len(seen); 2*len(seen) <= world {
		return 0, nil
	}
	for number := 0; len(lowest) < min(n, maxAbsent); number++ {
		if !seen[number] {
			lowest = append(lowest, number)
		}
	}
	return n, lowest
}

// clearly is how much earlier than all others a rank stopped if it stands out.
const clearly = 2 * time.Second

// Last is what a rank did last.
type Last struct {
	// What it finished, or "" if that is unknown, and At, by its clock.
	What string
	At   time.Time
}

// Apart returns the indexes of the ranks that finished something else last than
// most ranks did. If all finished the same, it returns the one that stopped
// clearly before the others. It returns none if no rank stands out.
func Apart(all []Last) (apart []int) {
	counts := make(map[string]int)
	var known []int
	usual := ""
	for i, last := range all {
		if last.What == "" {
			continue
		}
		known = append(known, i)
		counts[last.What]++
		if n := counts[last.What]; n > counts[usual] || n == counts[usual] && last.What < usual {
			usual = last.What
		}
	}
	switch {
	case len(known) < 2:
		return nil
	case len(counts) == 1:
		slices.SortStableFunc(known, func(a, b int) int { return all[a].At.Compare(all[b].At) })
		if all[known[1]].At.Sub(all[known[0]].At) < clearly {
			return nil
		}
		return known[:1]
	case 2*counts[usual] <= len(known):
		return nil
	}
	return slices.DeleteFunc(known, func(i int) bool { return all[i].What == usual })
}

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

// Wait is what the dumps of PyTorch's Flight Recorder say about the ranks of a run. The zero
// Wait says nothing.
type Wait struct {
	// Stuck is the first rank that the others wait for. Its Number is "" if that is unknown.
	Stuck
	// Sentences say who waits for whom, and At is when the newest dump was written.
	Sentences []string
	At        time.Time
}

// NewWait returns what dumps say of which the newest was written at a time.
func NewWait(v *flightrecorder.Verdict, at time.Time) Wait {
	w := Wait{Stuck: Stuck{gravity: len(reasons) - 1}, Sentences: v.Sentences(), At: at}
	if v.Awaited >= 0 {
		w.Number = strconv.FormatInt(v.Awaited, 10)
	}
	return w
}

// Said is what NCCL and dumps say about the ranks of a run.
type Said struct {
	// Stuck are the ranks that the others wait for, as NCCL says.
	Stuck []Stuck
	Wait  Wait
}

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
	if s := mlattr.Find(a.stuck, func(s *Stuck) bool { return s.Number == number }); s != nil {
		s.gravity = min(s.gravity, gravity)
	} else if len(a.stuck) < maxStuck {
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
