package model

import (
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
)

// Retention of what has no setting.
const (
	// resolvedFor is how long a problem that has ended is shown.
	resolvedFor = 24 * time.Hour
	// pruneEvery is the time between two removals of what is gone.
	pruneEvery = time.Minute
)

// prune removes what has been gone for long.
func (s *Store) prune(now time.Time) {
	if now.Sub(s.pruned) < pruneEvery && !now.Before(s.pruned) {
		return
	}
	s.pruned = now
	s.runs.Prune(now)
	needed := make(map[gpus.Ref]bool)
	for one := range s.problems {
		if !one.Lasts(now) {
			delete(s.problems, one)
			s.streams.Remove(one)
			continue
		}
		needed[gpus.Ref{Host: one.Labels.Host, ID: one.Labels.GPU}] = true
	}
	s.gpus.Prune(needed, now)
	s.models.Prune(s.settings.History, now)
	for id, p := range s.pools {
		if p.DropGone(s.streams, now); len(p.Streams) == 0 {
			delete(s.pools, id)
		}
	}
	s.services.Prune(s.streams, now)
	s.ofHosts.DropGone(s.streams, now)
	s.pruneNotes(now)
}

// pruneNotes removes old hosts, collectors, refused rows, changes, marks and failures.
func (s *Store) pruneNotes(now time.Time) {
	s.hosts.Prune(s.settings.History, now)
	s.senders.Prune(s.settings.History, now)
	s.limits.Prune(now)
	for id, r := range s.records {
		if now.Sub(r.Onset) > kept.Week {
			delete(s.records, id)
		}
	}
	s.resolved = slices.DeleteFunc(s.resolved, func(n api.Need) bool { return now.Sub(*n.Ended) > resolvedFor })
	s.changes.Prune(now)
	s.failures.Prune(now)
}
