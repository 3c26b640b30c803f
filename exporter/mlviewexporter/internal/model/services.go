package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
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
	lastSeen time.Time
	group
}

// services are the programs that send telemetry.
type services struct {
	texts  *texts
	limits *limits

	all map[serviceID]*service
	// leaving are the next to be replaced, full is when there were none.
	leaving []*service
	full    time.Time
	// simulated are the names of those whose data is simulated, withoutRun counts the
	// spans without a run.
	simulated  map[string]bool
	withoutRun map[serviceID]int64
}

func newServices(texts *texts, limits *limits) *services {
	return &services{
		texts: texts, limits: limits,
		all: make(map[serviceID]*service), simulated: make(map[string]bool), withoutRun: make(map[serviceID]int64),
	}
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

// of returns a service, which it adds for an origin if there is room, else nil.
func (s *services) of(namespace, name string, from share.Origin, now time.Time) *service {
	id := serviceID{namespace, name}
	one := s.all[id]
	if one == nil {
		if len(s.all) >= maxServices && !s.replace(now) {
			s.limits.drop("services")
			return nil
		}
		id = serviceID{s.texts.of(namespace), s.texts.of(name)}
		if one = s.all[id]; one != nil {
			return one
		}
		one = &service{serviceID: id, origin: from, firstSeen: now, versions: make(map[string]time.Time), failed: make(map[string]float64)}
		s.all[id] = one
	}
	one.lastSeen = now
	return one
}

// replace forgets a service without series that was seen longest ago, of senders
// that have more than their share.
func (s *services) replace(now time.Time) bool {
	if len(s.leaving) == 0 && now.Sub(s.full).Abs() >= searchAgain {
		all := slices.Collect(maps.Values(s.all))
		slices.SortFunc(all, func(a, b *service) int { return b.lastSeen.Compare(a.lastSeen) })
		for _, i := range s.limits.leave(len(all), func(i int) (share.Origin, int) { return all[i].origin, 1 }) {
			if len(all[i].streams) == 0 {
				s.leaving = append(s.leaving, all[i])
			}
		}
		if len(s.leaving) == 0 {
			s.full = now
		}
	}
	for len(s.leaving) > 0 {
		next := s.leaving[0]
		s.leaving = s.leaving[1:]
		if s.all[next.serviceID] == next && len(next.streams) == 0 {
			s.forget(next.serviceID)
			return true
		}
	}
	return false
}

func (s *services) forget(id serviceID) {
	delete(s.all, id)
	delete(s.withoutRun, id)
}

// span takes over what a span says of its service, which is nil if there was no room.
func (s *services) span(in *SpanInput, of *service, now time.Time) {
	src := in.Source
	if src.Run == "" && in.Runless {
		id := serviceID{src.Namespace, src.Service}
		if _, known := s.withoutRun[id]; known || of != nil {
			if of != nil {
				id = of.serviceID
			}
			s.withoutRun[id]++
		}
	}
	if src.Simulated {
		s.seeSimulated(src.Service)
	}
	if of == nil {
		return
	}
	if src.User != "" && src.User != of.user {
		of.user = s.texts.of(src.User)
	}
	s.seeVersion(of, src.Version, now)
}

// seeFailure counts the failure of a span for the version of its service.
func (s *services) seeFailure(of *service, version string) {
	if version = s.texts.of(version); version != "" && !of.versions[version].IsZero() {
		of.failed[version]++
	}
}

// seeSimulated notes that the data of a service is simulated.
func (s *services) seeSimulated(service string) {
	if service != "" && !s.simulated[service] && len(s.simulated) < maxServices {
		s.simulated[s.texts.of(service)] = true
	}
}

// prune forgets the services that have been gone for long.
func (s *services) prune(streams *streamTable, now time.Time) {
	for id, of := range s.all {
		of.dropGone(streams, now)
		if len(of.streams) == 0 && now.Sub(of.lastSeen) > importedFor {
			s.forget(id)
		}
	}
}

// seeVersion notes when a version of a service was first seen.
func (s *services) seeVersion(of *service, version string, now time.Time) {
	if version == "" {
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

// savedService is what is known of a service, so that it is not new after a
// restart.
type savedService struct {
	Namespace string               `json:"namespace,omitempty"`
	Name      string               `json:"name"`
	FirstSeen time.Time            `json:"first_seen"`
	LastSeen  time.Time            `json:"last_seen"`
	Versions  map[string]time.Time `json:"versions,omitempty"`
}

// saved returns the services for restore.
func (s *services) saved() (all []savedService) {
	for _, of := range s.all {
		all = append(all, savedService{
			Namespace: of.namespace, Name: of.name, FirstSeen: of.firstSeen, LastSeen: of.lastSeen,
			Versions: maps.Clone(of.versions),
		})
	}
	return all
}

// restore adds a service that saved has returned.
func (s *services) restore(in savedService, now time.Time) {
	if _, known := s.all[serviceID{in.Namespace, in.Name}]; known {
		return
	}
	of := s.of(in.Namespace, in.Name, share.OriginOf(0, in.Name), now)
	if of == nil {
		return
	}
	of.firstSeen, of.lastSeen = plausible(in.FirstSeen, in.LastSeen), in.LastSeen
	for version, first := range in.Versions {
		if len(of.versions) < maxPerService {
			of.versions[s.texts.of(version)] = plausible(first, in.LastSeen)
		}
	}
}

// toolErrors returns the failed calls of tools by class, nil if there are none.
func (of *service) toolErrors(now time.Time) map[string]float64 {
	var errors map[string]float64
	for _, one := range of.streams {
		if one.series == Errors && one.labels.Own[0] == "execute_tool" && one.live(now) {
			addClass(&errors, one.labels.Own[1], one.value)
		}
	}
	return errors
}

// errorRatios returns ml.request.error.ratio of a service, recent and usual. Of those
// that several collectors have computed, the one with the worst recent one counts.
func (of *service) errorRatios(now time.Time) (recent, usual *float64) {
	collector := ""
	for _, one := range of.streams {
		if one.series == ErrorRatio && one.labels.Own[0] == mlattr.WindowRecent && one.live(now) && (recent == nil || one.value > *recent) {
			recent, collector = finite(one.value), one.labels.Collector
		}
	}
	for _, one := range of.streams {
		if one.series == ErrorRatio && one.labels.Own[0] == mlattr.WindowUsual && one.live(now) && (recent == nil || one.labels.Collector == collector) {
			usual = finite(one.value)
		}
	}
	return recent, usual
}
