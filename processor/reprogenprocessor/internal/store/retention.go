package store

import (
	"errors"
	"slices"
	"time"
)

// Enforce removes artefacts until the limits hold, and returns them.
func (s *Store) Enforce(now time.Time) ([]Removed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var removed []Removed
	var errs []error
	remove := func(i int) {
		a := s.kept[i]
		s.kept = slices.Delete(s.kept, i, i+1)
		s.bytes -= a.size
		removed = append(removed, Removed{Fingerprint: a.fingerprint, Name: a.name})
		if err := s.remove(a); err != nil {
			errs = append(errs, err)
		}
	}
	if s.limits.Age > 0 {
		for len(s.kept) > 0 && now.Sub(s.kept[0].written) > s.limits.Age {
			remove(0)
		}
	}
	for s.over() {
		remove(s.victim())
	}
	return removed, errors.Join(errs...)
}

func (s *Store) over() bool {
	return len(s.kept) > 0 && (s.limits.Artifacts > 0 && len(s.kept) > s.limits.Artifacts ||
		s.limits.Bytes > 0 && s.bytes > s.limits.Bytes)
}

// victim returns the artefact that goes first: the oldest of a group that has
// another one, or the oldest of all, since what is known about a defect only
// once goes last. A service that has more than half of the directory gives
// before any other.
func (s *Store) victim() int {
	have := make(map[string]int, len(s.kept))
	type use struct {
		artifacts int
		bytes     int64
	}
	services := make(map[string]use)
	for _, a := range s.kept {
		have[a.fingerprint]++
		u := services[a.service]
		services[a.service] = use{u.artifacts + 1, u.bytes + a.size}
	}
	greedy, some := "", false
	for service, u := range services {
		if s.limits.Artifacts > 0 && 2*u.artifacts > s.limits.Artifacts || s.limits.Bytes > 0 && 2*u.bytes > s.limits.Bytes {
			if !some || u.bytes > services[greedy].bytes || u.bytes == services[greedy].bytes && service < greedy {
				greedy, some = service, true
			}
		}
	}
	oldest := -1
	for i, a := range s.kept {
		if some && a.service != greedy {
			continue
		}
		if have[a.fingerprint] > 1 {
			return i
		}
		if oldest < 0 {
			oldest = i
		}
	}
	return oldest
}

// remove takes an artefact from the disk. The caller holds mu.
func (s *Store) remove(a artifact) error {
	if err := s.root.RemoveAll(a.fingerprint + "/" + a.name); err != nil {
		return err
	}
	for _, k := range s.kept {
		if k.fingerprint == a.fingerprint {
			return nil
		}
	}
	// A folder that holds something else besides stays: only the summary is
	// ours to remove.
	_ = s.root.Remove(a.fingerprint + "/" + groupFile)
	_ = s.root.Remove(a.fingerprint)
	return nil
}
