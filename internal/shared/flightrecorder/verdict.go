package flightrecorder

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// groupKey tells process groups of a job apart: PyTorch gives each a name, but for the groups
// of Gloo.
type groupKey struct{ name, ranks string }

// Conclude compares the dumps of the ranks of a job. It returns a verdict for each group of
// which a rank waits, those with the most evidence first.
func Conclude(dumps []*Dump) (verdicts []Verdict) {
	groups := make(map[groupKey][]member)
	for _, d := range dumps {
		for i := range d.Groups {
			g := &d.Groups[i]
			key := groupKey{g.Name, g.Ranks}
			groups[key] = append(groups[key], member{g, d.Rank})
		}
	}
	for _, members := range groups {
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.rank, b.rank) })
		members = slices.CompactFunc(members, func(a, b member) bool { return a.rank == b.rank })
		if v := concludeGroup(members); len(v.Waiting) > 0 {
			verdicts = append(verdicts, v)
		}
	}
	slices.SortFunc(verdicts, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(len(b.Missing)+len(b.Differing), len(a.Missing)+len(a.Differing)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Waiting[0], b.Waiting[0]))
	})
	return verdicts
}

// concludeGroup compares the ranks of a group, which are in order, by the first collective
// that not all have completed. The majority is right: of equal numbers, those that called
// the same operation as the lowest rank.
func concludeGroup(members []member) Verdict {
	v := Verdict{Group: members[0].Name, Description: members[0].Description, Number: -1}
	for _, m := range members {
		if m.Waits != nil && (v.Number < 0 || m.Waits.Number < v.Number) {
			v.Number = m.Waits.Number
		}
	}
	if v.Number < 0 {
		return v
	}
	var called []member
	calls := make(map[string]int)
	for _, m := range members {
		switch {
		case m.Waits != nil && m.Waits.Number == v.Number:
			called = append(called, m)
			calls[m.Waits.call()]++
		case m.Waits == nil && (m.Newest == nil || m.Newest.Number < v.Number):
			v.Missing = append(v.Missing, m.rank)
			v.Last = cmp.Or(v.Last, m.last())
		}
	}
	var most *Entry
	for _, m := range called {
		if e := m.Waits; most == nil || calls[e.call()] > calls[most.call()] {
			most, v.Operation, v.Frame = e, e.Operation, e.Frame
		}
	}
	for _, m := range called {
		if m.Waits.call() == most.call() {
			v.Waiting = append(v.Waiting, m.rank)
		} else {
			v.Differing = append(v.Differing, m.rank)
			v.Last = cmp.Or(v.Last, m.Waits.describe())
		}
	}
	for _, rank := range parseRanks(members[0].Ranks) {
		if _, found := slices.BinarySearchFunc(members, rank, func(m member, rank int64) int { return cmp.Compare(m.rank, rank) }); !found {
			v.Unknown = append(v.Unknown, rank)
		}
	}
	return v
}

// call is what ranks that call the same have in common.
func (e *Entry) call() string { return e.Operation + " " + e.Shape }

// last says what was called last.
func (g *Group) last() string {
	if g.Newest != nil {
		return g.Newest.describe()
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

// EvidencePrefix begins the evidence of a problem that is one of Sentences.
const EvidencePrefix = "Flight Recorder: "

// maxNamed is the number of ranks that are named in a sentence.
const maxNamed = 8

// Sentence says who waits for whom, and what the first of those that the others wait for did last.
func (v *Verdict) Sentence() string { return Join(v.Sentences()) }

// Join writes Sentences as a text.
func Join(sentences []string) string {
	return strings.Join(mlattr.Mapped(sentences, func(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }), " ")
}

// Sentences returns the one or two sentences of Sentence without capitals and periods.
func (v *Verdict) Sentences() (all []string) {
	var text strings.Builder
	what := fmt.Sprintf("%s #%d of the group %s", v.Operation, v.Number, cmp.Or(v.Description, v.Group))
	if v.Frame != "" {
		what += " (" + v.Frame + ")"
	}
	fmt.Fprintf(&text, "%s %s %s", names(v.Waiting), plural(v.Waiting, "waits in", "wait in"), what)
	switch {
	case len(v.Missing) > 0:
		fmt.Fprintf(&text, " for %s, which %s called it", names(v.Missing), plural(v.Missing, "has not", "have not"))
	case len(v.Differing) > 0:
		fmt.Fprintf(&text, " for %s, which %s", names(v.Differing), plural(v.Differing, "calls something else", "call something else"))
	case len(v.Unknown) > 0:
		fmt.Fprintf(&text, "; of %s there is no dump", names(v.Unknown))
	default:
		text.WriteString(", and none is missing: the operation itself does not end")
	}
	all = append(all, text.String())
	if rank, known := v.Awaited(); known {
		all = append(all, fmt.Sprintf("rank %d was last in %s", rank, v.Last))
	}
	return all
}

// Awaited returns the first rank that the others wait for, if it is known.
func (v *Verdict) Awaited() (rank int64, known bool) {
	if of := slices.Concat(v.Missing, v.Differing); len(of) > 0 {
		return of[0], true
	}
	return 0, false
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
