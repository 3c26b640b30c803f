package streams

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// maxSilences bounds the programs that are remembered as sending series
// themselves.
const maxSilences = 8192

// Set says of each series whether it is meant.
type Set [series.Count]bool

// Silences knows which series programs send themselves, so that nobody else
// writes them. It is safe for concurrent use.
type Silences struct {
	mu  sync.RWMutex
	set map[Resource]*silence
}

// silence is what one program sends itself.
type silence struct {
	// sends is replaced and never changed: who has it reads on without a lock.
	sends *Set
	heard [series.Count]time.Time
}

// Note says that a program has sent a series at now.
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

// of returns what a program sends itself, or nil.
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

// all returns what each program sends itself, without those of which nothing
// was heard for longer than expiration, which are forgotten; 0 means never.
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
