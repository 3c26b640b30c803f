package model

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// problems are those that ml_metrics reports.
type problems struct {
	*owners
	// open are the streams of those that last, full is when nothing could make room for
	// one.
	open map[*series.Stream]bool
	full time.Time
	// records are those of open problems.
	records  map[recordID]*record
	resolved resolved
	silences silences
}

func newProblems(o *owners) *problems {
	return &problems{
		owners: o, open: make(map[*series.Stream]bool), records: make(map[recordID]*record),
		resolved: resolved{limits: o.limits}, silences: silences{owners: o, all: make(map[*fleet.Sender]*api.Need)},
	}
}

// Limits of the problems, of those that are shown, and of those that have ended.
const (
	maxProblems = 2000
	maxNeeds    = 500
	maxResolved = 200
	// resolvedFor is how long a problem that has ended is shown.
	resolvedFor = 24 * time.Hour
)

// prune removes the problems that have been over for long, and returns the GPUs of the
// others.
func (s *problems) prune(now time.Time) (of map[gpus.Ref]bool) {
	of = make(map[gpus.Ref]bool)
	for one := range s.open {
		if !one.Lasts(now) {
			delete(s.open, one)
			s.streams.Remove(one)
			continue
		}
		of[gpus.Ref{Host: one.Labels.Host, ID: one.Labels.GPU}] = true
	}
	maps.DeleteFunc(s.records, func(_ recordID, r *record) bool { return now.Sub(r.Onset) > kept.Week })
	s.resolved.all = slices.DeleteFunc(s.resolved.all, func(n api.Need) bool { return now.Sub(*n.Ended) > resolvedFor })
	return of
}
