package mlenrichprocessor

import (
	"strings"
	"time"
)

// place is where a run was seen: a rank of a host, or a service of a host.
// The one has no service, the other no ranks.
type place struct {
	host    string
	service string

	global, local, world int64
}

// liveRuns are the runs last seen at a place. Two are enough to know that
// there is not exactly one.
type liveRuns [2]struct {
	id   string
	seen time.Time
}

// see notes that a run was seen.
func (l *liveRuns) see(id string, now time.Time) {
	oldest := 0
	for i := range l {
		if l[i].id == id {
			l[i].seen = now
			return
		}
		if l[i].seen.Before(l[oldest].seen) {
			oldest = i
		}
	}
	l[oldest].id, l[oldest].seen = strings.Clone(id), now
}

// only returns the run of the place if exactly one is alive there.
func (l *liveRuns) only(now time.Time) string {
	only := ""
	for i := range l {
		if l[i].id == "" || now.Sub(l[i].seen) > liveAge {
			continue
		}
		if only != "" {
			return ""
		}
		only = l[i].id
	}
	return only
}

// seeRun notes at which places a run was seen.
func (s *store) seeRun(id string, places ...place) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range places {
		known := s.runs.find(p, now)
		if known == nil {
			p.host, p.service = strings.Clone(p.host), strings.Clone(p.service)
			known = s.runs.insert(p, now)
		}
		known.see(id, now)
	}
}

// runAt returns the only live run of a place, or "".
func (s *store) runAt(p place) string {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	// A look does not keep a run alive.
	known := s.runs.peek(p)
	if known == nil {
		return ""
	}
	return known.only(now)
}
