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
	s.pruned, s.leaving.next, s.leavingRanks.next = now, nil, nil
	for _, r := range s.runs {
		if now.Sub(r.lastSeen) > s.settings.History {
			s.removeRun(r)
		}
	}
	needed := make(map[gpuID]bool)
	for one := range s.problems {
		if !one.lasts(now) {
			delete(s.problems, one)
			s.streams.remove(one)
			continue
		}
		needed[gpuID{one.labels.Host, one.labels.GPU}] = true
	}
	for id, g := range s.gpus {
		if !g.readings.Silent(now) {
			g.streams = s.dropGone(g.streams, now)
		}
		if age := now.Sub(g.lastSeen); age > gpuGoneAfter && !needed[id] && (age > s.settings.History || len(g.workloads(now)) == 0) {
			s.removeGPU(g)
			delete(s.xids, id)
		}
	}
	for _, m := range s.models {
		m.streams = s.dropGone(m.streams, now)
		if len(m.streams) == 0 && now.Sub(m.lastSeen) > s.settings.History {
			s.removeModel(m)
		}
	}
	for id, p := range s.pools {
		if p.streams = s.dropGone(p.streams, now); len(p.streams) == 0 {
			delete(s.pools, id)
		}
	}
	for id, of := range s.services {
		of.streams = s.dropGone(of.streams, now)
		if len(of.streams) == 0 && now.Sub(of.lastSeen) > importedFor {
			s.forgetService(id)
		}
	}
	s.ofHosts = s.dropGone(s.ofHosts, now)
	s.pruneNotes(now)
	s.pruneGood(now)
}

// dropGone removes streams without a current value. Those of runs stay with
// their runs, whose totals they are.
func (s *Store) dropGone(streams []*stream, now time.Time) []*stream {
	return slices.DeleteFunc(streams, func(one *stream) bool {
		if one.run != nil || one.live(now) {
			return false
		}
		s.streams.remove(one)
		return true
	})
}

// pruneNotes removes old hosts, collectors, refused rows, changes, marks and failures.
func (s *Store) pruneNotes(now time.Time) {
	s.hosts.prune(s.settings.History, now)
	s.senders.prune(s.settings.History, now)
	s.limits.prune(now)
	for of, xid := range s.xids {
		if age := now.Sub(xid.Time); age > importedFor || s.gpus[of] == nil && age > gpuGoneAfter {
			delete(s.xids, of)
		}
	}
	for id, r := range s.records {
		if now.Sub(r.Onset) > importedFor {
			delete(s.records, id)
		}
	}
	s.resolved = slices.DeleteFunc(s.resolved, func(n Need) bool { return now.Sub(*n.Ended) > resolvedFor })
	s.changes.prune(now)
	s.failures.prune(now)
}
