package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// stateWord names a state as the page does.
func stateWord(state string) string {
	if state == mlattr.RunStalled {
		return "looks hung"
	}
	return state
}

// maxNoted limits the text of a change or of a mark, in bytes.
const maxNoted = 256

// changes are those that ml_metrics has recorded, and the moments of runs.
type changes struct {
	fleet bool
	texts *texts

	all   []Change
	marks []mark
}

// note adds a change of the run with a key, "" for none.
func (c *changes) note(in *Change, run string, now time.Time) {
	one := Change{
		Time: earlier(in.Time, now), Kind: c.texts.of(in.Kind), Service: c.texts.of(in.Service), Host: c.texts.of(in.Host),
		Run: run, RunID: c.texts.of(in.RunID), From: c.texts.of(in.From), To: c.texts.of(in.To),
		Text: strings.Clone(cut(in.Text, maxNoted)),
	}
	if one.Text == "" {
		one.Text = one.Kind + " " + one.To
	}
	one.Key = keyOf("change", one.Kind, one.Service, one.RunID, one.Host, one.From, one.To, one.Time.Format(time.RFC3339Nano))
	if slices.ContainsFunc(c.all, func(other Change) bool { return other.Key == one.Key || c.fleet && repeats(&one, &other) }) {
		return
	}
	c.all = appended(c.all, one, maxChanges, func(other *Change) bool {
		return other.Run == one.Run && other.Service == one.Service && other.Host == one.Host
	})
}

// repeatedWithin is how far apart several collectors see the same change.
const repeatedWithin = 15 * time.Minute

// repeats reports whether two collectors have reported the same change.
func repeats(c, other *Change) bool {
	same := *other
	same.Key, same.Time = c.Key, c.Time
	return same == *c && other.Time.Sub(c.Time).Abs() <= repeatedWithin
}

// maxOfOne limits the changes of one run or service, and the moments of one run, so
// that they do not push out those of others.
const maxOfOne = 50

// appended adds one to a list. It removes the oldest of those that belong together
// with it if these are too many, else the oldest of all.
func appended[T any](all []T, one T, limit int, same func(*T) bool) []T {
	n, first := 0, 0
	for i := len(all) - 1; i >= 0; i-- {
		if same(&all[i]) {
			n, first = n+1, i
		}
	}
	switch {
	case n >= maxOfOne:
		all = slices.Delete(all, first, first+1)
	case len(all) >= limit:
		all = slices.Delete(all, 0, 1)
	}
	return append(all, one)
}

// rows returns the changes, the newest first.
func (c *changes) rows() []Change {
	rows := slices.Clone(c.all)
	slices.SortStableFunc(rows, func(a, b Change) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Key, b.Key)) })
	if rows == nil {
		rows = []Change{}
	}
	return rows
}

// Limits of the changes before a problem.
const (
	maxBefore    = 5
	beforeWithin = 6 * time.Hour
	// onsetTolerance is how much later than the onset a change may be seen that
	// came before it: metrics arrive at intervals.
	onsetTolerance = 30 * time.Second
)

// before returns the changes of a run, a service or hosts that came before a time,
// the newest first.
func (c *changes) before(since time.Time, service, run string, hosts map[string]bool) []Change {
	rows := []Change{}
	for _, one := range slices.Backward(c.all) {
		if isMark(one.Kind) || one.Time.After(since.Add(onsetTolerance)) || since.Sub(one.Time) > beforeWithin {
			continue
		}
		if run != "" && one.Run == run || service != "" && one.Service == service && (one.RunID == "" || run == "") || one.Host != "" && one.Service == "" && hosts[one.Host] {
			rows = append(rows, one)
		}
	}
	slices.SortStableFunc(rows, func(a, b Change) int { return b.Time.Compare(a.Time) })
	return rows[:min(len(rows), maxBefore)]
}

// isMark reports whether the kind of a row of changes is that of a problem that is only
// a mark.
func isMark(kind string) bool {
	known, ok := mlattr.ProblemNamed(kind)
	return ok && known.Severity == mlattr.SeverityMark
}

// mark is a moment of a run that is shown on its curves.
type mark struct {
	Run string `json:"run"`
	Mark
}

// maxMarks limits the moments of all runs.
const maxMarks = 2000

// mark adds a moment of the run with a key, unless it is known.
func (c *changes) mark(run string, at Mark) {
	if m := (mark{run, at}); !slices.Contains(c.marks, m) {
		c.marks = appended(c.marks, m, maxMarks, func(other *mark) bool { return other.Run == run })
	}
}

// marksOf returns the moments of a run of a service on hosts in their order: states,
// problems, changes and the failures. That a run looks hung is one of them: its onset, not also when the
// state changed after the timeout.
func (c *changes) marksOf(run, service string, hosts map[string]bool, failures []Mark) []Mark {
	rows := []Mark{}
	for _, m := range c.marks {
		if m.Run == run {
			rows = append(rows, m.Mark)
		}
	}
	for _, one := range c.all {
		if one.Run == run || one.RunID == "" && one.Service == service || one.Service == "" && hosts[one.Host] {
			kind := "change"
			if isMark(one.Kind) {
				kind = one.Kind
			}
			rows = append(rows, Mark{Time: one.Time, Kind: kind, Text: one.Text})
		}
	}
	rows = append(rows, failures...)
	slices.SortStableFunc(rows, func(a, b Mark) int { return a.Time.Compare(b.Time) })
	onset := false
	return slices.DeleteFunc(rows, func(m Mark) bool {
		onset = onset || m.Kind == LooksHung
		return onset && m.Kind == "state" && strings.HasPrefix(m.Text, stateWord(mlattr.RunStalled))
	})
}

// of returns the changes of a run of a service on hosts, and those of the service and the
// hosts from shortly before its first data until its last, the newest first.
func (c *changes) of(run, service string, hosts map[string]bool, first, last time.Time) []Change {
	rows := slices.DeleteFunc(c.rows(), func(one Change) bool {
		if one.Run == run {
			return false
		}
		if ofService := one.RunID == "" && one.Service == service; !ofService && (one.Service != "" || !hosts[one.Host]) {
			return true
		}
		return first.Sub(one.Time) > beforeWithin || one.Time.Sub(last) > goneAfter
	})
	return rows[:min(len(rows), maxOfOne)]
}

// between returns the changes of the service of both runs between their
// starts, and those of the run itself, the newest first.
func (c *changes) between(both *Comparison) []Change {
	run := &both.Run.Run
	return slices.DeleteFunc(c.rows(), func(one Change) bool {
		if one.Run == run.Key {
			return false
		}
		ofHost := one.Service == "" && slices.Contains(run.Hosts, one.Host)
		return one.Service != run.Service && !ofHost || both.With == nil || one.Time.Before(both.With.Run.FirstSeen) || one.Time.After(run.LastSeen)
	})
}

// spoiled reports whether a run has had a problem that spoils it.
func (c *changes) spoiled(run string) bool {
	return slices.ContainsFunc(c.marks, func(m mark) bool { return m.Run == run && spoils(m.Kind) })
}

// spoils reports whether a run that has had a problem of a kind is no good one. A
// moment, such as a spike of the loss, does not spoil a run.
func spoils(kind string) bool {
	problem, ok := mlattr.ProblemNamed(kind)
	return ok && (problem.Severity != mlattr.SeverityMark || kind == mlattr.ProblemLossDiverged)
}

// prune removes old changes and moments.
func (c *changes) prune(now time.Time) {
	c.all = slices.DeleteFunc(c.all, func(one Change) bool { return now.Sub(one.Time) > importedFor })
	c.marks = slices.DeleteFunc(c.marks, func(m mark) bool { return now.Sub(m.Time) > importedFor })
}

// restore adds the changes and moments of before a restart that are recent and not known.
func (c *changes) restore(all []Change, marks []mark, recent func(time.Time) bool) {
	known := make(map[string]bool)
	for _, one := range c.all {
		known[one.Key] = true
	}
	for _, one := range all {
		if recent(one.Time) && len(c.all) < maxChanges && !known[one.Key] {
			known[one.Key] = true
			c.all = append(c.all, one)
		}
	}
	for _, m := range marks {
		if recent(m.Time) {
			c.mark(m.Run, m.Mark)
		}
	}
}
