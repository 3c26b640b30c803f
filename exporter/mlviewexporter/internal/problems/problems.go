// Package problems holds the problems that ml_metrics reports, what its log records say of
// them, and those that have ended.
package problems

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/changes"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Subjects are what problems are about, and where what is known of it is held.
type Subjects struct {
	*input.Bounds
	Streams  *series.Table
	Hosts    *fleet.Hosts
	Senders  *fleet.Senders
	Runs     *runs.Set
	GPUs     *gpus.Set
	Services *serving.Services
	Failures *failures.Groups
	Changes  *changes.Log
}

// Set are the problems.
type Set struct {
	Subjects
	// open are the streams of those that last, full is when nothing could make room for
	// one.
	open map[*series.Stream]bool
	full time.Time
	// records are those of open problems.
	records map[recordID]*input.Record
	// ended are the problems that have ended, the newest end last.
	ended []api.Need
	// silent are the problems that collectors are silent although somebody worked.
	silent map[*fleet.Sender]*api.Need
}

// New returns a Set without problems. It is told when a collector leaves the page.
func New(of Subjects) *Set {
	s := &Set{
		Subjects: of, open: make(map[*series.Stream]bool), records: make(map[recordID]*input.Record),
		silent: make(map[*fleet.Sender]*api.Need),
	}
	of.Senders.Left = func(one *fleet.Sender, now time.Time) { s.endSilence(one, mlattr.ProblemNoEvidence, now) }
	return s
}

// Limits of the problems, and of those that are shown.
const (
	maxProblems = 2000
	maxNeeds    = 500
)

// Prune removes the problems that have been over for long, and returns the GPUs of the
// others.
func (s *Set) Prune(now time.Time) (of map[gpus.Ref]bool) {
	of = make(map[gpus.Ref]bool)
	for one := range s.open {
		if !one.Lasts(now) {
			delete(s.open, one)
			s.Streams.Remove(one)
			continue
		}
		of[gpus.Ref{Host: one.Labels.Host, ID: one.Labels.GPU}] = true
	}
	maps.DeleteFunc(s.records, func(_ recordID, r *input.Record) bool { return now.Sub(r.Onset) > kept.Week })
	return of
}

// Resolved returns the problems that ended within the last 24 hours, the newest end
// first.
func (s *Set) Resolved(state *api.State, now time.Time) []api.Need {
	s.ended = slices.DeleteFunc(s.ended, func(n api.Need) bool { return now.Sub(*n.Ended) > resolvedFor })
	rows := slices.Clone(s.ended)
	slices.Reverse(rows)
	return api.Limited(state.Collector.Hidden, "resolved", together(rows), maxResolved)
}

// Saved returns the records of open problems and those that have ended, for Restore.
func (s *Set) Saved() (records []*input.Record, resolved []api.Need) {
	return slices.Collect(maps.Values(s.records)), slices.Clone(s.ended)
}

// Restore adds what Saved has returned: the records of problems, until others come, and
// those that have ended.
func (s *Set) Restore(records []*input.Record, resolved []api.Need, recent func(time.Time) bool, now time.Time) {
	for _, r := range records {
		if r != nil && recent(r.Onset) && urgency(r.Kind) >= 0 && s.records[recordIDOf(r.Kind, r.Subject)] == nil {
			r.Ended = time.Time{}
			s.Note(r, now)
		}
	}
	for i := range resolved[:min(len(resolved), maxEnded)] {
		n := &resolved[i]
		if n.Ended == nil || now.Sub(*n.Ended) > resolvedFor || n.Ended.After(now.Add(time.Minute)) || urgency(n.Kind) < 0 {
			continue
		}
		kept.Shorten(kept.MaxNoted, &n.Key, &n.EndReason, &n.Run, &n.RunID, &n.Service, &n.Job, &n.Owner, &n.Team, &n.Subject, &n.Unit)
		n.Since = kept.Plausible(n.Since, *n.Ended)
		n.Evidence = kept.Clones(n.Evidence, maxPhrases, kept.MaxNoted)
		n.Before, n.GPUs, n.Next, n.Command, n.Cause = nil, nil, "", "", ""
		s.end(n)
	}
}

const (
	// maxResolved limits the problems that have ended, as they are shown, maxEnded as they
	// are kept.
	maxResolved = 200
	maxEnded    = 5 * maxResolved
	// resolvedFor is how long a problem that has ended is shown.
	resolvedFor = 24 * time.Hour
)

// end adds a problem that has ended, in place of the one that ended first beyond the limit.
func (s *Set) end(n *api.Need) {
	if slices.ContainsFunc(s.ended, func(known api.Need) bool { return known.Key == n.Key }) {
		return
	}
	s.ended = append(s.ended, *n)
	slices.SortStableFunc(s.ended, func(a, b api.Need) int { return a.Ended.Compare(*b.Ended) })
	if len(s.ended) > maxEnded {
		s.ended = slices.Delete(s.ended, 0, 1)
		s.Limits.Drop("resolved problems")
	}
}

// together joins the rows of GPUs of one host whose problems of a kind began and ended at
// the same times.
func together(rows []api.Need) []api.Need {
	type group struct {
		key, kind, host, run, owner, reason string
		since, ended                        int64
	}
	same := api.Grouped(rows, func(n *api.Need) group {
		host, _, of := strings.Cut(n.Subject, gpuOf)
		if !of {
			return group{key: n.Key}
		}
		return group{"", n.Kind, host, n.Run, n.Owner, n.EndReason, n.Since.UnixNano(), n.Ended.UnixNano()}
	})
	return mlattr.Mapped(same, func(all []*api.Need) api.Need {
		joined := *all[0]
		host, first, _ := strings.Cut(joined.Subject, gpuOf)
		names := []string{first}
		for _, n := range all[1:] {
			names = append(names, strings.TrimPrefix(n.Subject, host+gpuOf))
			if joined.GPUHours != nil && n.GPUHours != nil {
				joined.GPUHours = new(*joined.GPUHours + *n.GPUHours)
			}
		}
		if len(all) > 1 {
			slices.SortFunc(names, gpus.CompareIndexes)
			joined.Subject = placesOn(host, names...)
		}
		return joined
	})
}

// reportSilence is how long a collector is silent until that is a problem: the usual
// stall_timeout of ml_metrics.
const reportSilence = 5 * time.Minute

// silences returns the collectors as problems that fell silent while somebody
// worked of whom only they told. ml_metrics of a collector that has died cannot say so.
func (s *Set) silences(state *api.State, now time.Time) (rows []api.Need) {
	for _, row := range state.Collectors {
		one := s.Senders.All[row.ID]
		n := s.silence(one, &row, now)
		if n == nil {
			s.endSilence(one, mlattr.ProblemOver, now)
			continue
		}
		s.silent[one] = n
		rows = append(rows, *n)
	}
	return rows
}

// silence returns the problem that a collector is silent, nil if it is none.
func (s *Set) silence(one *fleet.Sender, row *api.SendingCollector, now time.Time) *api.Need {
	if row.SilentSince == nil || now.Sub(*row.SilentSince) < reportSilence {
		return nil
	}
	kind, _ := mlattr.ProblemNamed(mlattr.ProblemHostSilent)
	n := &api.Need{
		Key: api.Key("need", mlattr.ProblemHostSilent, "collector", one.ID), Kind: kind.Name, Severity: string(kind.Severity), Since: *row.SilentSince,
		Subject: "collector " + row.Title(), Before: []api.Change{},
		Next: "See whether the collector runs and reaches this page, and the hosts behind it.",
	}
	working := mlattr.Where(maps.Values(s.Runs.All), func(r *runs.Run) bool {
		w := r.Writers[r.Writer]
		return w != nil && w.Sender == one && r.News.Silent(now) && runs.Severity(r.CurrentState(now)) >= runs.Severity(mlattr.RunRunning)
	})
	holding := mlattr.Where(maps.Values(s.GPUs.All), func(g *gpus.GPU) bool {
		all := g.Workloads(now)
		return len(all) > 0 && all[0].Sender == one
	})
	held := len(holding)
	if len(working)+held == 0 {
		return nil
	}
	n.GPUs = slices.Sorted(slices.Values(mlattr.Mapped(holding, func(g *gpus.GPU) string { return g.Key })))
	n.Say("no data since %s", api.Clock(n.Since, now))
	n.Say("%s worked then, and %s held", api.Counted(len(working), "run", "runs"), api.Counted(held, "GPU was", "GPUs were"))
	if len(working) == 1 {
		s.ofRun(n, working[0])
	}
	if held > 0 {
		n.GPUHours = api.Finite(float64(held) * now.Sub(n.Since).Hours())
	}
	return n
}

// endSilence keeps as resolved that a collector was silent, if that was a problem.
func (s *Set) endSilence(one *fleet.Sender, reason string, now time.Time) {
	if n := s.silent[one]; n != nil {
		n.Key, n.Ended, n.EndReason, n.Next = api.Key("resolved", n.Key, n.Since.String()), api.TimeOf(now), reason, ""
		s.end(n)
		delete(s.silent, one)
	}
}
