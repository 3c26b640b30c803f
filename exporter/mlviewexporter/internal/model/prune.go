package model

import (
	"slices"
	"time"
)

// Retention of what has no setting.
const (
	// importedFor is how long changes and failures are kept over restarts.
	importedFor = 7 * 24 * time.Hour
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
	s.runs.prune(now)
	needed := make(map[gpuID]bool)
	for one := range s.problems {
		if !one.lasts(now) {
			delete(s.problems, one)
			s.streams.remove(one)
			continue
		}
		needed[gpuID{one.labels.Host, one.labels.GPU}] = true
	}
	s.gpus.prune(needed, now)
	s.models.prune(s.settings.History, now)
	for id, p := range s.pools {
		if p.dropGone(s.streams, now); len(p.streams) == 0 {
			delete(s.pools, id)
		}
	}
	s.services.prune(s.streams, now)
	s.ofHosts.dropGone(s.streams, now)
	s.pruneNotes(now)
}

// pruneNotes removes old hosts, collectors, refused rows, changes, marks and failures.
func (s *Store) pruneNotes(now time.Time) {
	s.hosts.prune(s.settings.History, now)
	s.senders.prune(s.settings.History, now)
	s.limits.prune(now)
	for id, r := range s.records {
		if now.Sub(r.Onset) > importedFor {
			delete(s.records, id)
		}
	}
	s.resolved = slices.DeleteFunc(s.resolved, func(n Need) bool { return now.Sub(*n.Ended) > resolvedFor })
	s.changes.prune(now)
	s.failures.prune(now)
}
