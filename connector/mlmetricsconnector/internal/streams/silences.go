package streams

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// maxSilences limits the programs that are remembered.
const maxSilences = 8192

// Set is a set of series.
type Set [series.Count]bool

// Silences records which series programs send themselves, so that the connector
// does not write them. It is safe for concurrent use.
type Silences struct {
	mu  sync.RWMutex
	set map[Resource]*silence
}

// silence is what one program sends itself.
type silence struct {
	// sends is replaced and never modified, so that holders can read it without
	// a lock.
	sends *Set
	heard [series.Count]time.Time
}

// Note records that a program sent a series at now.
func (s *Silences) Note(of Resource, id series.ID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.set[of]
	if !ok {
		if len(s.set) >= maxSilences {
			return
		}
		if s.set == nil {
			s.set = make(map[Resource]*silence)
		}
		known = &silence{sends: new(Set)}
		s.set[of.Clone()] = known
	}
	known.heard[id] = now
	if !known.sends[id] {
		sends := *known.sends
		sends[id] = true
		known.sends = &sends
	}
}

// of returns the series that a program sends itself, or nil.
func (s *Silences) of(resource Resource) *Set {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known, ok := s.set[resource]; ok {
		return known.sends
	}
	return nil
}

// all returns the series that each program sends itself. It removes programs
// that have sent none for longer than expiration; 0 removes none.
func (s *Silences) all(expiration time.Duration, now time.Time) map[Resource]*Set {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all map[Resource]*Set
	for resource, known := range s.set {
		sends, some := *known.sends, false
		for id := range sends {
			sends[id] = sends[id] && (expiration <= 0 || now.Sub(known.heard[id]) <= expiration)
			some = some || sends[id]
		}
		if !some {
			delete(s.set, resource)
			continue
		}
		if sends != *known.sends {
			known.sends = &sends
		}
		if all == nil {
			all = make(map[Resource]*Set)
		}
		all[resource] = known.sends
	}
	return all
}
