package flightrecorder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Verdict is what dumps of the ranks of a group say of a collective that some wait in.
type Verdict struct {
	// Group and Description are those of the process group.
	Group, Description string
	// Number and Operation are those of the collective, and Frame is where the program of most
	// of those that wait has called it.
	Number           int64
	Operation, Frame string
	// Waiting are the ranks in it. Missing have not called it, Differing call something else
	// or with other sizes or types than most, and Unknown have no dump.
	Waiting, Missing, Differing, Unknown []int64
	// Last is what the first of Missing, or else of Differing, did last.
	Last string
}

// member is a group as one rank knows it.
type member struct {
	*Group
	rank int64
}

// Conclude compares the dumps of the ranks of a job. It returns a verdict for each group of
// which a rank waits, those with the most evidence first.
func Conclude(dumps []*Dump) (verdicts []Verdict) {
	groups := make(map[groupKey][]member)
	for _, d := range dumps {
		for _, g := range d.Groups {
			groups[g.key()] = append(groups[g.key()], member{g, d.Rank})
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(groups), groupKey.compare) {
		members := groups[key]
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.rank, b.rank) })
		members = slices.CompactFunc(members, func(a, b member) bool { return a.rank == b.rank })
		if v := concludeGroup(members); len(v.Waiting) > 0 {
			verdicts = append(verdicts, v)
		}
	}
	slices.SortStableFunc(verdicts, func(a, b Verdict) int {
		return cmp.Compare(len(b.Missing)+len(b.Differing), len(a.Missing)+len(a.Differing))
	})
	return verdicts
}

// concludeGroup compares the ranks of a group, which are in order, by the first collective
// that not all have completed. The majority is right: of equal numbers, those that called
// the same operation as the lowest rank.
func concludeGroup(members []member) Verdict {
	v := Verdict{Group: members[0].Name, Description: members[0].Description, Number: -1}
	for _, m := range members {
		if first := m.first(); first >= 0 && (v.Number < 0 || first < v.Number) {
			v.Number = first
		}
	}
	if v.Number < 0 {
		return v
	}
	var called []member
	calls := make(map[string]int)
	for _, m := range members {
		switch e := m.Entries[v.Number]; {
		case e != nil && !e.Completed:
			called = append(called, m)
			calls[e.call()]++
		case e == nil && m.newest() < v.Number:
			v.Missing = append(v.Missing, m.rank)
			v.Last = cmp.Or(v.Last, m.last())
		}
	}
	var most *Entry
	for _, m := range called {
		if e := m.Entries[v.Number]; most == nil || calls[e.call()] > calls[most.call()] {
			most, v.Operation, v.Frame = e, e.Operation, e.Frame
		}
	}
	for _, m := range called {
		if e := m.Entries[v.Number]; e.call() == most.call() {
			v.Waiting = append(v.Waiting, m.rank)
		} else {
			v.Differing = append(v.Differing, m.rank)
			v.Last = cmp.Or(v.Last, e.describe())
		}
	}
	for _, rank := range members[0].Ranks {
		if _, found := slices.BinarySearchFunc(members, rank, func(m member, rank int64) int { return cmp.Compare(m.rank, rank) }); !found {
			v.Unknown = append(v.Unknown, rank)
		}
	}
	return v
}

// call is what ranks that call the same have in common.
func (e *Entry) call() string { return e.Operation + " " + e.Shape }

// groupKey tells process groups of a job apart: PyTorch gives each a name, but for the groups
// of Gloo.
type groupKey struct {
	name  string
	first int64
	size  int
}

func (g *Group) key() groupKey {
	key := groupKey{name: g.Name, size: len(g.Ranks)}
	if key.size > 0 {
		key.first = g.Ranks[0]
	}
	return key
}

func (k groupKey) compare(other groupKey) int {
	return cmp.Or(cmp.Compare(k.name, other.name), cmp.Compare(k.first, other.first), cmp.Compare(k.size, other.size))
}

// first returns the number of the first collective that was called and not completed, -1
// without one.
func (g *Group) first() (number int64) {
	number = -1
	for n, e := range g.Entries {
		if !e.Completed && n > g.Completed && (number < 0 || n < number) {
			number = n
		}
	}
	return number
}

// newest returns the number of the newest collective that was called, -1 without one.
func (g *Group) newest() (number int64) {
	number = -1
	for n := range g.Entries {
		number = max(number, n)
	}
	return number
}

// last says what was called last.
func (g *Group) last() string {
	if e := g.Entries[g.newest()]; e != nil {
		return e.describe()
	}
	return "no collective of the group"
}

func (e *Entry) describe() string {
	text := fmt.Sprintf("%s #%d %s", e.Operation, e.Number, e.Shape)
	if e.Frame != "" {
		text += " (" + e.Frame + ")"
	}
	return text
}

// maxNamed is the number of ranks that are named in a sentence.
const maxNamed = 8

// Sentence says who waits for whom.
func (v *Verdict) Sentence() string {
	var text strings.Builder
	what := fmt.Sprintf("%s #%d of the group %s", v.Operation, v.Number, cmp.Or(v.Description, v.Group))
	if v.Frame != "" {
		what += " (" + v.Frame + ")"
	}
	who := names(v.Waiting)
	fmt.Fprintf(&text, "%s%s %s in %s", strings.ToUpper(who[:1]), who[1:], plural(v.Waiting, "waits", "wait"), what)
	switch {
	case len(v.Missing) > 0:
		fmt.Fprintf(&text, " for %s, which %s not called it", names(v.Missing), plural(v.Missing, "has", "have"))
	case len(v.Differing) > 0:
		fmt.Fprintf(&text, " for %s, which %s something else", names(v.Differing), plural(v.Differing, "calls", "call"))
	case len(v.Unknown) > 0:
		fmt.Fprintf(&text, "; of %s there is no dump", names(v.Unknown))
	default:
		text.WriteString(", and none is missing: the operation itself does not end")
	}
	if others := slices.Concat(v.Missing, v.Differing); len(others) > 0 {
		fmt.Fprintf(&text, ". Rank %d was last in %s", others[0], v.Last)
	}
	return text.String() + "."
}

func plural(ranks []int64, one, more string) string {
	if len(ranks) == 1 {
		return one
	}
	return more
}

func names(ranks []int64) string {
	parts := mlattr.Mapped(ranks[:min(len(ranks), maxNamed)], func(rank int64) string { return strconv.FormatInt(rank, 10) })
	text := "ranks " + strings.Join(parts, ", ")
	if len(ranks) == 1 {
		text = "rank " + parts[0]
	}
	if len(ranks) > maxNamed {
		text += fmt.Sprintf(" and %d others", len(ranks)-maxNamed)
	}
	return text
}

const (
	// together is how far apart the dumps of a hang are written at most, and maxJobs and
	// maxDumps limit those that are remembered.
	together          = 10 * time.Minute
	maxJobs, maxDumps = 64, 4096
)

// Jobs remembers the dumps of jobs, by their names and ranks: those of one job have one name
// but for the rank at its end. It is not safe for concurrent use.
type Jobs map[string]map[int64]*Dump

// Add adds a dump of a job that was written at a time.
func (j Jobs) Add(name string, d *Dump, at time.Time) {
	of := j[name]
	if of == nil {
		if len(j) >= maxJobs {
			clear(j)
		}
		of = make(map[int64]*Dump)
		j[name] = of
	}
	maps.DeleteFunc(of, func(_ int64, other *Dump) bool { return at.Sub(other.at) > together })
	if d.at = at; len(of) < maxDumps {
		of[d.Rank] = d
	}
}

// Conclude compares the dumps of a job.
func (j Jobs) Conclude(name string) []Verdict {
	return Conclude(mlattr.Mapped(slices.Sorted(maps.Keys(j[name])), func(rank int64) *Dump { return j[name][rank] }))
}
