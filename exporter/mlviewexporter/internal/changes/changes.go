// Package changes holds the changes that ml_metrics has recorded, and the moments of runs.
package changes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Log are those that ml_metrics has recorded, and the moments of runs.
type Log struct {
	*input.Bounds
	All   []api.Change
	Marks []RunMark
}

// New returns a Log without changes.
func New(of *input.Bounds) *Log { return &Log{Bounds: of} }

// Note adds a change of the run with a key, "" for none.
func (c *Log) Note(in *api.Change, run string, now time.Time) {
	one := api.Change{
		Time: kept.Earlier(in.Time, now), Kind: c.Texts.Of(in.Kind), Service: c.Texts.Of(in.Service), Host: c.Texts.Of(in.Host),
		Run: run, RunID: c.Texts.Of(in.RunID), From: c.Texts.Of(in.From), To: c.Texts.Of(in.To),
		Text: strings.Clone(kept.Cut(in.Text, kept.MaxNoted)),
	}
	one.Text = cmp.Or(one.Text, one.Kind+" "+one.To)
	one.Key = api.Key("change", one.Kind, one.Service, one.RunID, one.Host, one.From, one.To, one.Time.Format(time.RFC3339Nano))
	if slices.ContainsFunc(c.All, func(other api.Change) bool { return other.Key == one.Key || c.Fleet && repeats(&one, &other) }) {
		return
	}
	c.All = shared.AppendBounded(c.All, one, maxChanges, maxOfOne, func(other api.Change) bool {
		return other.Run == one.Run && other.Service == one.Service && other.Host == one.Host
	})
}

// repeatedWithin is how far apart several collectors see the same change.
const repeatedWithin = 15 * time.Minute

// repeats reports whether two collectors have reported the same change.
func repeats(c, other *api.Change) bool {
	same := *other
	same.Key, same.Time = c.Key, c.Time
	return same == *c && other.Time.Sub(c.Time).Abs() <= repeatedWithin
}

// maxOfOne limits the changes of one run or service, and the moments of one run, so
// that they do not push out those of others.
const maxOfOne = 50

// Rows returns the changes, the newest first.
func (c *Log) Rows() []api.Change {
	return slices.SortedStableFunc(slices.Values(c.All), func(a, b api.Change) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Key, b.Key))
	})
}

// RunMark is a moment of a run that is shown on its curves.
type RunMark struct {
	Run string `json:"run"`
	api.Mark
}

// maxMarks limits the moments of all runs.
const maxMarks = 2000

// Mark adds a moment of the run with a key, unless it is known.
func (c *Log) Mark(run string, at api.Mark) {
	if m := (RunMark{run, at}); !slices.Contains(c.Marks, m) {
		c.Marks = shared.AppendBounded(c.Marks, m, maxMarks, maxOfOne, func(other RunMark) bool { return other.Run == run })
	}
}

// MarksOf returns the moments of a run of a service on hosts in their order: states,
// problems, changes and the failures. That a run looks hung is one of them: its onset, not also when the
// state changed after the timeout.
func (c *Log) MarksOf(run, service string, hosts map[string]bool, failures []api.Mark) []api.Mark {
	own := mlattr.Where(slices.Values(c.Marks), func(m RunMark) bool { return m.Run == run })
	rows := mlattr.Mapped(own, func(m RunMark) api.Mark { return m.Mark })
	for _, one := range c.All {
		if one.Run == run || ofSubject(&one, service, hosts) {
			kind := "change"
			if known, ok := mlattr.ProblemNamed(one.Kind); ok && known.Severity == mlattr.SeverityMark {
				kind = one.Kind // a problem that is only a mark
			}
			rows = append(rows, api.Mark{Time: one.Time, Kind: kind, Text: one.Text})
		}
	}
	rows = append(rows, failures...)
	slices.SortStableFunc(rows, func(a, b api.Mark) int { return a.Time.Compare(b.Time) })
	onset := false
	return slices.DeleteFunc(rows, func(m api.Mark) bool {
		onset = onset || m.Kind == mlattr.ProblemLooksHung
		return onset && m.Kind == "state" && strings.HasPrefix(m.Text, api.StateWord(mlattr.RunStalled))
	})
}

// ofSubject reports whether a change is one of a service as a whole, or of one of the hosts.
func ofSubject(c *api.Change, service string, hosts map[string]bool) bool {
	return c.RunID == "" && c.Service == service || c.Service == "" && hosts[c.Host]
}

// beforeWithin is how long before a run its changes may be.
const beforeWithin = 6 * time.Hour

// Of returns the changes of a run of a service on hosts, and those of the service and the
// hosts from shortly before its first data until its last, the newest first.
func (c *Log) Of(run, service string, hosts map[string]bool, first, last time.Time) []api.Change {
	rows := slices.DeleteFunc(c.Rows(), func(one api.Change) bool {
		return one.Run != run && (!ofSubject(&one, service, hosts) || first.Sub(one.Time) > beforeWithin || one.Time.Sub(last) > series.GoneAfter)
	})
	return rows[:min(len(rows), maxOfOne)]
}

// Between returns the changes of the service of both runs between their
// starts, and those of the run itself, the newest first.
func (c *Log) Between(both *api.Comparison) []api.Change {
	run := &both.Run.Run
	return slices.DeleteFunc(c.Rows(), func(one api.Change) bool {
		if one.Run == run.Key {
			return false
		}
		ofHost := one.Service == "" && slices.Contains(run.Hosts, one.Host)
		return one.Service != run.Service && !ofHost || both.With == nil || one.Time.Before(both.With.Run.FirstSeen) || one.Time.After(run.LastSeen)
	})
}

// Spoiled reports whether a run has had a problem, so that it is no good one. A moment, such
// as a spike of the loss, does not spoil a run.
func (c *Log) Spoiled(run string) bool {
	return slices.ContainsFunc(c.Marks, func(m RunMark) bool {
		problem, ok := mlattr.ProblemNamed(m.Kind)
		return m.Run == run && ok && (problem.Severity != mlattr.SeverityMark || m.Kind == mlattr.ProblemLossDiverged)
	})
}

// Prune removes old changes and moments.
func (c *Log) Prune(now time.Time) {
	c.All = slices.DeleteFunc(c.All, func(one api.Change) bool { return now.Sub(one.Time) > kept.Week })
	c.Marks = slices.DeleteFunc(c.Marks, func(m RunMark) bool { return now.Sub(m.Time) > kept.Week })
}

// Restore adds the changes and moments of before a restart that are recent and not known.
func (c *Log) Restore(all []api.Change, marks []RunMark, recent func(time.Time) bool) {
	for _, one := range all {
		known := slices.ContainsFunc(c.All, func(known api.Change) bool { return known.Key == one.Key })
		if recent(one.Time) && len(c.All) < maxChanges && !known {
			c.All = append(c.All, one)
		}
	}
	for _, m := range marks {
		if recent(m.Time) {
			c.Mark(m.Run, m.Mark)
		}
	}
}

// maxChanges limits the changes.
const maxChanges = 500
