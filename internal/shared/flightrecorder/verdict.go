package flightrecorder

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	// or with other sizes or types than most, Absent have a dump without a collective of the
	// group, and Unknown have no dump: the first ones of Undumped.
	Waiting, Missing, Differing, Absent, Unknown []int64
	Undumped                                     int
	// Known reports whether the number of ranks of the group is known.
	Known bool
	// Awaited is the first of Missing, or else of Differing, that waits in no other group, -1
	// without one, and Last what it did last.
	Awaited int64
	Last    string

	// ranks are those of the group, as Group has them, and members those that know it.
	ranks   string
	members []int64
}

// member is a group as one rank knows it.
type member struct {
	*Group
	rank int64
}

// groupKey tells process groups of a job apart: PyTorch gives each a name, but for the groups
// of Gloo.
type groupKey struct{ name, ranks string }

// maxVerdicts bounds the verdicts of a job, maxUnknown the ranks without a dump that are listed.
const maxVerdicts, maxUnknown = 16, 256

// Conclude compares the dumps of the ranks of a job, one of each. It returns a verdict for each
// group of which a rank waits, at most 16: first those that name a rank, and of these those with
// the most evidence.
func Conclude(dumps []*Dump) (verdicts []Verdict) {
	groups := make(map[groupKey][]member)
	waits := make(map[int64]int) // the groups in which each rank waits; 0 if it has a dump
	for _, d := range dumps {
		waits[d.Rank] += 0
		for i := range d.Groups {
			g := &d.Groups[i]
			key := groupKey{g.Name, g.Ranks}
			groups[key] = append(groups[key], member{g, d.Rank})
			waits[d.Rank] += g.waits()
		}
	}
	for _, members := range groups {
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.rank, b.rank) })
		members = slices.CompactFunc(members, func(a, b member) bool { return a.rank == b.rank })
		if v := concludeGroup(members, waits); len(v.Waiting) > 0 {
			verdicts = append(verdicts, v)
		}
	}
	slices.SortFunc(verdicts, func(a, b Verdict) int {
		return cmp.Or(
			-cmp.Compare(min(a.Awaited, 0), min(b.Awaited, 0)), cmp.Compare(len(b.Missing)+len(b.Differing), len(a.Missing)+len(a.Differing)),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Waiting[0], b.Waiting[0]))
	})
	verdicts = verdicts[:min(len(verdicts), maxVerdicts)]
	for i := range verdicts {
		verdicts[i].miss(waits)
	}
	return verdicts
}

// concludeGroup compares the ranks of a group, which are in order, by the first collective
// that not all have completed. The majority is right: of equal numbers, those that called
// the same operation as the lowest rank.
func concludeGroup(members []member, waits map[int64]int) Verdict {
	v := Verdict{Group: members[0].Name, Description: members[0].Description, Number: -1, Awaited: -1, ranks: members[0].Ranks}
	for _, m := range members {
		v.members = append(v.members, m.rank)
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
			if v.Awaited < 0 && waits[m.rank] == 0 {
				v.Awaited, v.Last = m.rank, m.Newest.describe()
			}
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
			continue
		}
		v.Differing = append(v.Differing, m.rank)
		if v.Awaited < 0 && waits[m.rank] == 1 {
			v.Awaited, v.Last = m.rank, m.Waits.describe()
			if m.Waits.Operation == most.Operation {
				v.Last += " with " + m.Waits.Shape + " instead of " + most.Shape
			}
		}
	}
	return v
}

// miss finds the ranks of the group that have nothing in it.
func (v *Verdict) miss(waits map[int64]int) {
	if n, ok := strings.CutPrefix(v.ranks, numberOnly); ok {
		number, _ := strconv.Atoi(n)
		v.Known, v.Undumped = number > 0, max(number-len(v.members), 0)
		return
	}
	for _, rank := range parseRanks(v.ranks) {
		v.Known = true
		if _, found := slices.BinarySearch(v.members, rank); found {
			continue
		}
		switch _, dumped := waits[rank]; {
		case !dumped:
			if v.Undumped++; len(v.Unknown) < maxUnknown {
				v.Unknown = append(v.Unknown, rank)
			}
		case len(v.Absent) < maxUnknown:
			v.Absent = append(v.Absent, rank)
		}
	}
}

// call is what ranks that call the same have in common. Ranks send and get different sizes in
// some operations.
func (e *Entry) call() string {
	if strings.HasPrefix(e.Operation, "all_to_all") || strings.HasPrefix(e.Operation, "alltoall") || e.Operation == "scatter" {
		return e.Operation
	}
	return e.Operation + " " + e.Shape
}

// describe says what was called.
func (e *Entry) describe() string {
	if e == nil {
		return "no collective of the group"
	}
	text := fmt.Sprintf("%s #%d", e.Operation, e.Number)
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
	return strings.Join(mlattr.Mapped(sentences, func(s string) string {
		_, first := utf8.DecodeRuneInString(s)
		return strings.ToUpper(s[:first]) + s[first:] + "."
	}), " ")
}

// Sentences returns the one or two sentences of Sentence without capitals and periods.
func (v *Verdict) Sentences() (all []string) {
	var text strings.Builder
	group := strings.ReplaceAll(cmp.Or(v.Description, v.Group), " ", "_") // one name
	what := fmt.Sprintf("%s #%d of the group %s", v.Operation, v.Number, group)
	if v.Frame != "" {
		what += " (" + v.Frame + ")"
	}
	fmt.Fprintf(&text, "%s %s %s", names(v.Waiting, len(v.Waiting)), plural(v.Waiting, "waits in", "wait in"), what)
	switch {
	case len(v.Missing) > 0:
		fmt.Fprintf(&text, " for %s, which %s called it", names(v.Missing, len(v.Missing)), plural(v.Missing, "has not", "have not"))
	case len(v.Differing) > 0:
		fmt.Fprintf(&text, " for %s, which %s", names(v.Differing, len(v.Differing)), plural(v.Differing, "calls something else", "call something else"))
	case len(v.Absent) > 0:
		fmt.Fprintf(&text, "; the dumps of %s have no collective of the group", names(v.Absent, len(v.Absent)))
	case v.Undumped > 0:
		fmt.Fprintf(&text, "; of %s there is no dump", names(v.Unknown, v.Undumped))
	case !v.Known:
		text.WriteString("; which other ranks the group has is not known")
	default:
		text.WriteString(", and none is missing: the operation itself does not end")
	}
	all = append(all, text.String())
	if v.Awaited >= 0 {
		all = append(all, fmt.Sprintf("rank %d was last in %s", v.Awaited, v.Last))
	}
	return all
}

func plural(ranks []int64, one, more string) string {
	if len(ranks) == 1 {
		return one
	}
	return more
}

// names names the first of n ranks.
func names(ranks []int64, n int) string {
	if len(ranks) == 0 {
		return fmt.Sprintf("%d ranks", n)
	}
	parts := mlattr.Mapped(ranks[:min(len(ranks), maxNamed)], func(rank int64) string { return strconv.FormatInt(rank, 10) })
	text := "ranks " + strings.Join(parts, ", ")
	if n == 1 {
		text = "rank " + parts[0]
	}
	if n > len(parts) {
		text += fmt.Sprintf(" and %d others", n-len(parts))
	}
	return text
}
