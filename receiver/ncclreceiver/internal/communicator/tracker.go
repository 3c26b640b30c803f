// Package communicator judges the ranks of communicators by what NCCL says about
// them at several times.
package communicator

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/ras"
)

// maxTracked limits the communicators that are compared with their past.
const maxTracked = 8192

// State is the state of a rank.
type State string

// The states. The values are those of the attribute nccl.rank.state.
const (
	// OK is none of the others.
	OK State = "ok"
	// Missing means that the process responds and does not have the communicator.
	Missing State = "missing"
	// Unresponsive means that the process did not respond in time.
	Unresponsive State = "unresponsive"
	// Dead means that NCCL has given the process up.
	Dead State = "dead"
	// Behind means that the others wait for the rank: it has launched fewer
	// operations than another, and no rank has launched one for several answers.
	Behind State = "behind"
)

// States lists every state in the order of reports.
var States = []State{OK, Missing, Unresponsive, Dead, Behind}

// Ranked is a rank with its state.
type Ranked struct {
	ras.Rank
	State State
}

// Report is what an answer says about a communicator.
type Report struct {
	*ras.Communicator
	// Affected has the ranks that are not OK, Changed those whose state is another
	// than in the report before, both ordered by Number.
	Affected, Changed []Ranked
	// Most is, by collective, the number of operations that the fastest rank has
	// launched, and Lag how many fewer the slowest has. They are unknown, and
	// Compared false, if less than two ranks have responded, or one of them is being
	// made or destroyed.
	Most, Lag [len(ras.Collectives)]uint64
	Compared  bool
}

// Count returns the number of ranks in a state.
func (r *Report) Count(state State) (n int) {
	if state == OK {
		return len(r.Ranks) + len(r.Missing) - len(r.Affected)
	}
	for i := range r.Affected {
		if r.Affected[i].State == state {
			n++
		}
	}
	return n
}

// Tracker compares each communicator with its past. Create it with NewTracker. It
// is not safe for concurrent use.
type Tracker struct {
	polls int
	known map[string]*past
}

// past is what is remembered of a communicator.
type past struct {
	at time.Time
	// ranks are those that responded last, and same is how many answers in a row had
	// the same ranks with the same counts.
	ranks []ras.Rank
	same  int
	// affected has the ranks that were not OK.
	affected map[int]State
}

// NewTracker returns a Tracker for which a rank is Behind after so many answers in a
// row with the same counts.
func NewTracker(polls int) *Tracker { return &Tracker{polls: polls, known: make(map[string]*past)} }

// Observe judges a communicator. Beyond 8192 communicators a new one is judged by
// the present answer only.
func (t *Tracker) Observe(c *ras.Communicator, now time.Time) Report {
	before := t.known[c.Hash]
	if before == nil {
		before = &past{}
		if len(t.known) < maxTracked {
			t.known[c.Hash] = before
		}
	}
	before.at = now
	r := Report{Communicator: c}
	r.compare()
	if !slices.EqualFunc(before.ranks, c.Ranks, func(a, b ras.Rank) bool { return a.Number == b.Number && a.Counts == b.Counts }) {
		before.same = 0
	}
	before.ranks = c.Ranks
	before.same++
	for i := range c.Missing {
		r.Affected = append(r.Affected, Ranked{c.Missing[i], stateOf(&c.Missing[i])})
	}
	if r.Compared && before.same >= t.polls {
		for i := range r.Ranks {
			if r.Ranks[i].Counts != r.Most {
				r.Affected = append(r.Affected, Ranked{r.Ranks[i], Behind})
			}
		}
	}
	slices.SortFunc(r.Affected, func(a, b Ranked) int { return a.Number - b.Number })
	before.affected = r.changed(before.affected)
	return r
}

// Forget forgets the communicators that were not observed since a time, as of jobs
// that have ended.
func (t *Tracker) Forget(since time.Time) {
	maps.DeleteFunc(t.known, func(_ string, p *past) bool { return p.at.Before(since) })
}

// stateOf returns the state of a rank that has not responded.
func stateOf(rank *ras.Rank) State {
	switch {
	case rank.Dead:
		return Dead
	case rank.Unresponsive:
		return Unresponsive
	}
	return Missing
}

// compare computes the lags.
func (r *Report) compare() {
	if len(r.Ranks) < 2 {
		return
	}
	least, most := r.Ranks[0].Counts, r.Ranks[0].Counts
	for i := range r.Ranks {
		if !r.Ranks[i].Running {
			return
		}
		for op, count := range r.Ranks[i].Counts {
			least[op], most[op] = min(least[op], count), max(most[op], count)
		}
	}
	r.Compared, r.Most = true, most
	for op := range most {
		r.Lag[op] = min(most[op]-least[op], math.MaxInt64)
	}
}

// changed sets Changed by the states before, and returns the present ones.
func (r *Report) changed(before map[int]State) (now map[int]State) {
	if len(r.Affected) > 0 {
		now = make(map[int]State, len(r.Affected))
	}
	for _, rank := range r.Affected {
		now[rank.Number] = rank.State
		if before[rank.Number] != rank.State {
			r.Changed = append(r.Changed, rank)
		}
	}
	for i := range r.Ranks {
		number := r.Ranks[i].Number
		if _, still := now[number]; !still && before[number] != "" {
			r.Changed = append(r.Changed, Ranked{r.Ranks[i], OK})
		}
	}
	slices.SortFunc(r.Changed, func(a, b Ranked) int { return a.Number - b.Number })
	return now
}
