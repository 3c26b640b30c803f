package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// serviceID identifies a service.
type serviceID struct{ namespace, name string }

// service is a program that sends telemetry.
type service struct {
	serviceID
	origin    share.Origin
	firstSeen time.Time
	// user is the one that its spans name.
	user string
	// versions has when each was first seen.
	versions map[string]time.Time
	// failed counts the failures of spans by version.
	failed   map[string]float64
	streams  []*stream
	lastSeen time.Time
}

// maxPerService limits the versions of a service that are remembered.
const maxPerService = 32

// forgetOldest makes room for one more: it removes what was first seen longest ago,
// more than an hour, and returns it. ok is false if there is no room: as many are
// in use in turn.
func forgetOldest(seen map[string]time.Time, now time.Time) (oldest string, ok bool) {
	if len(seen) < maxPerService {
		return "", true
	}
	for one, at := range seen {
		if oldest == "" || cmp.Or(at.Compare(seen[oldest]), cmp.Compare(one, oldest)) < 0 {
			oldest = one
		}
	}
	if now.Sub(seen[oldest]) < time.Hour {
		return "", false
	}
	delete(seen, oldest)
	return oldest, true
}

func (s *Store) serviceOf(namespace, name string, from share.Origin, now time.Time) *service {
	id := serviceID{namespace, name}
	one := s.services[id]
	if one == nil {
		if len(s.services) >= maxServices && !s.replaceService(now) {
			s.limits.drop("services")
			return nil
		}
		id = serviceID{s.texts.of(namespace), s.texts.of(name)}
		if one = s.services[id]; one != nil {
			return one
		}
		one = &service{serviceID: id, origin: from, firstSeen: now, versions: make(map[string]time.Time), failed: make(map[string]float64)}
		s.services[id] = one
	}
	one.lastSeen = now
	return one
}

// replaceService forgets a service without series that was seen longest ago, of senders
// that have more than their share.
func (s *Store) replaceService(now time.Time) bool {
	if len(s.leavingServices) == 0 && now.Sub(s.fullServices).Abs() >= searchAgain {
		all := slices.Collect(maps.Values(s.services))
		slices.SortFunc(all, func(a, b *service) int { return b.lastSeen.Compare(a.lastSeen) })
		for _, i := range s.limits.leave(len(all), func(i int) (share.Origin, int) { return all[i].origin, 1 }) {
			if len(all[i].streams) == 0 {
				s.leavingServices = append(s.leavingServices, all[i])
			}
		}
		if len(s.leavingServices) == 0 {
			s.fullServices = now
		}
	}
	for len(s.leavingServices) > 0 {
		next := s.leavingServices[0]
		s.leavingServices = s.leavingServices[1:]
		if s.services[next.serviceID] == next && len(next.streams) == 0 {
			s.forgetService(next.serviceID)
			return true
		}
	}
	return false
}

func (s *Store) forgetService(id serviceID) {
	delete(s.services, id)
	delete(s.seen.spansWithoutRun, id)
}

// seeVersion notes when a version of a service was first seen.
func (s *Store) seeVersion(of *service, version string, now time.Time) {
	if version == "" || of == nil {
		return
	}
	if _, known := of.versions[version]; known {
		return
	}
	version = s.texts.of(version)
	if _, known := of.versions[version]; known {
		return
	}
	if forgotten, ok := forgetOldest(of.versions, now); ok {
		delete(of.failed, forgotten)
		of.versions[version] = now
	}
}
