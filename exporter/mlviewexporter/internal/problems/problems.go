// Package problems holds the problems that ml_metrics reports, what its log records say of
// them, and those that have ended.
package problems

import (
	"maps"
	"slices"
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
	ended   ended
	// silent are the problems that collectors are silent although somebody worked.
	silent map[*fleet.Sender]*api.Need
}

// New returns a Set without problems. It is told when a collector leaves the page.
func New(of Subjects) *Set {
	s := &Set{
		Subjects: of, open: make(map[*series.Stream]bool), records: make(map[recordID]*input.Record),
		ended: ended{limits: of.Limits}, silent: make(map[*fleet.Sender]*api.Need),
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
	return api.Limited(state.Collector.Hidden, "resolved", together(s.ended.latest(now)), maxResolved)
}

// Saved returns the records of open problems and those that have ended, for Restore.
func (s *Set) Saved() (records []*input.Record, resolved []api.Need) {
	return slices.Collect(maps.Values(s.records)), slices.Clone(s.ended.rows)
}

// Restore adds what Saved has returned: the records of problems, until others come, and
// those that have ended.
func (s *Set) Restore(records []*input.Record, resolved []api.Need, recent func(time.Time) bool, now time.Time) {
	for _, r := range records {
		if r == nil || !recent(r.Onset) || urgency(r.Kind) < 0 {
			continue
		}
		if s.records[recordIDOf(r.Kind, r.Subject)] == nil {
			r.Ended = time.Time{}
			s.Note(r, now)
		}
	}
	s.ended.restore(resolved, now)
}
