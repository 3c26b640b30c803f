// Package serving holds the services and their use of models.
package serving

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// ServiceID identifies a service.
type ServiceID struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// CompareServices orders services by name.
func CompareServices(a, b ServiceID) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

// SavedService is what is known of a service, so that it is not new after a
// restart.
type SavedService struct {
	ServiceID
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	// Versions has when each was first seen.
	Versions map[string]time.Time `json:"versions,omitempty"`
}

// Service is a program that sends telemetry.
type Service struct {
	SavedService
	origin share.Origin
	// User is the one that its spans name.
	User string
	// Failed counts the failures of spans by version.
	Failed map[string]float64
	series.Group
}

// Services are the programs that send telemetry.
type Services struct {
	*input.Bounds
	All     map[ServiceID]*Service
	leaving kept.Leaving[*Service]
	// Simulated are the names of those whose data is simulated, WithoutRun counts the
	// spans without a run.
	Simulated  map[string]bool
	WithoutRun map[ServiceID]int64
}

// NewServices returns no services.
func NewServices(of *input.Bounds) *Services {
	return &Services{
		Bounds: of,
		All:    make(map[ServiceID]*Service), Simulated: make(map[string]bool), WithoutRun: make(map[ServiceID]int64),
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
	oldest = slices.MinFunc(slices.Collect(maps.Keys(seen)), func(a, b string) int {
		return cmp.Or(seen[a].Compare(seen[b]), cmp.Compare(a, b))
	})
	if now.Sub(seen[oldest]) < time.Hour {
		return "", false
	}
	delete(seen, oldest)
	return oldest, true
}

// Of returns a service, which it adds for an origin if there is room, else nil.
func (s *Services) Of(namespace, name string, from share.Origin, now time.Time) *Service {
	id := ServiceID{namespace, name}
	one := s.All[id]
	if one == nil {
		if len(s.All) >= maxServices && !s.replace(now) {
			s.Limits.Drop("services")
			return nil
		}
		id = ServiceID{s.Texts.Of(namespace), s.Texts.Of(name)}
		if one = s.All[id]; one != nil {
			return one
		}
		one = &Service{
			SavedService: SavedService{ServiceID: id, FirstSeen: now, Versions: make(map[string]time.Time)},
			origin:       from, Failed: make(map[string]float64),
		}
		s.All[id] = one
	}
	one.LastSeen = now
	return one
}

// replace forgets a service without series that was seen longest ago, of senders
// that have more than their share.
func (s *Services) replace(now time.Time) bool {
	may := func(one *Service) bool { return s.All[one.ServiceID] == one && len(one.Streams) == 0 }
	next, ok := s.leaving.Next(now, may, func() []*Service {
		all := slices.SortedFunc(maps.Values(s.All), func(a, b *Service) int { return b.LastSeen.Compare(a.LastSeen) })
		return kept.First(s.Limits, all, func(one *Service) (share.Origin, int) { return one.origin, 1 })
	})
	if ok {
		s.forget(next.ServiceID)
	}
	return ok
}

func (s *Services) forget(id ServiceID) {
	delete(s.All, id)
	delete(s.WithoutRun, id)
}

// Span takes over what a span says of its service, which is nil if there was no room.
func (s *Services) Span(in *input.Span, of *Service, now time.Time) {
	src := in.Source
	if src.Run == "" && in.Runless {
		id := ServiceID{src.Namespace, src.Service}
		if _, known := s.WithoutRun[id]; known || of != nil {
			if of != nil {
				id = of.ServiceID
			}
			s.WithoutRun[id]++
		}
	}
	if src.Simulated {
		s.SeeSimulated(src.Service)
	}
	if of == nil {
		return
	}
	s.Texts.Set(&of.User, src.User)
	s.seeVersion(of, src.Version, now)
}

// SeeFailure counts the failure of a span for the version of its service.
func (s *Services) SeeFailure(of *Service, version string) {
	if version = s.Texts.Of(version); version != "" && !of.Versions[version].IsZero() {
		of.Failed[version]++
	}
}

// SeeSimulated notes that the data of a service is simulated.
func (s *Services) SeeSimulated(service string) {
	if service != "" && !s.Simulated[service] && len(s.Simulated) < maxServices {
		s.Simulated[s.Texts.Of(service)] = true
	}
}

// Prune forgets the services that have been gone for long.
func (s *Services) Prune(streams *series.Table, now time.Time) {
	for id, of := range s.All {
		of.DropGone(streams, now)
		if len(of.Streams) == 0 && now.Sub(of.LastSeen) > kept.Week {
			s.forget(id)
		}
	}
}

// seeVersion notes when a version of a service was first seen.
func (s *Services) seeVersion(of *Service, version string, now time.Time) {
	version = s.Texts.Of(version)
	if _, known := of.Versions[version]; known || version == "" {
		return
	}
	if forgotten, ok := forgetOldest(of.Versions, now); ok {
		delete(of.Failed, forgotten)
		of.Versions[version] = now
	}
}

// Saved returns the services for restore.
func (s *Services) Saved() (all []SavedService) {
	for _, of := range s.All {
		one := of.SavedService
		one.Versions = maps.Clone(of.Versions)
		all = append(all, one)
	}
	return all
}

// Restore adds a service that saved has returned.
func (s *Services) Restore(in SavedService, now time.Time) {
	if s.All[in.ServiceID] != nil {
		return
	}
	of := s.Of(in.Namespace, in.Name, share.OriginOf(0, in.Name), now)
	if of == nil {
		return
	}
	of.FirstSeen, of.LastSeen = kept.Plausible(in.FirstSeen, in.LastSeen), in.LastSeen
	for version, first := range in.Versions {
		if len(of.Versions) < maxPerService {
			of.Versions[s.Texts.Of(version)] = kept.Plausible(first, in.LastSeen)
		}
	}
}

// toolErrors returns the failed calls of tools by class.
func (of *Service) toolErrors(now time.Time) map[string]float64 {
	errors := make(map[string]float64)
	for _, one := range of.Streams {
		if one.Series == series.Errors && one.Labels.Own[0] == "execute_tool" && one.Live(now) {
			addClass(errors, one.Labels.Own[1], one.Value)
		}
	}
	return errors
}

// ErrorRatios returns ml.request.error.ratio of a service, recent and usual. Of those
// that several collectors have computed, the one with the worst recent one counts.
func (of *Service) ErrorRatios(now time.Time) (recent, usual *float64) {
	collector := ""
	for _, one := range of.Streams {
		if one.Series == series.ErrorRatio && one.Labels.Own[0] == mlattr.WindowRecent && one.Live(now) && (recent == nil || one.Value > *recent) {
			recent, collector = api.Finite(one.Value), one.Labels.Collector
		}
	}
	for _, one := range of.Streams {
		if one.Series == series.ErrorRatio && one.Labels.Own[0] == mlattr.WindowUsual && one.Live(now) && (recent == nil || one.Labels.Collector == collector) {
			usual = api.Finite(one.Value)
		}
	}
	return recent, usual
}

// maxServices limits the services, MaxStreamsOfService the streams of one.
const (
	maxServices         = 2000
	MaxStreamsOfService = 2000
)

// calledID identifies the function that calls of a service call.
type calledID struct{ service, library, function string }

// spent is what time was spent on, by cause, in seconds: within the last minute, and
// since the start.
type spent struct{ recent, all map[string]float64 }

// add adds a stream of CallTime.
func (s *spent) add(one *series.Stream, now time.Time) {
	if s.all == nil {
		s.recent, s.all = make(map[string]float64), make(map[string]float64)
	}
	cause := one.Labels.Own[0]
	s.all[cause] += one.Value
	if grown, _, ok := one.Increase(now); ok {
		s.recent[cause] += grown
	}
}

// fractions returns the fractions of the last minute, else of all time, by cause,
// and nil if no time was spent.
func (s *spent) fractions() map[string]float64 {
	for _, seconds := range [...]map[string]float64{s.recent, s.all} {
		sum := 0.0
		for _, part := range seconds {
			sum += part
		}
		if !(sum > 0) {
			continue
		}
		fractions := make(map[string]float64, len(seconds))
		for cause, part := range seconds {
			if part > 0 {
				fractions[cause] = part / sum
			}
		}
		return fractions
	}
	return nil
}

// CallTimes returns what tells on what the time of calls of a function was spent, as
// fractions by cause.
func (s *Services) CallTimes(now time.Time) func(service, library, function string) map[string]float64 {
	times := make(map[calledID]*spent)
	for id, of := range s.All {
		for _, one := range of.Streams {
			own := &one.Labels.Own
			if one.Series != series.CallTime || own[6] == "" || !one.Live(now) {
				continue
			}
			called := calledID{id.Name, own[5], own[6]}
			if times[called] == nil {
				times[called] = new(spent)
			}
			times[called].add(one, now)
		}
	}
	return func(service, library, function string) map[string]float64 {
		if of := times[calledID{service, library, function}]; of != nil {
			return of.fractions()
		}
		return nil
	}
}

// requestTimes returns on what the time of the service's requests to a model was spent.
func (of *Service) requestTimes(id ModelID, now time.Time) map[string]float64 {
	var times spent
	for _, one := range of.Streams {
		own := &one.Labels.Own
		if one.Series == series.CallTime && own[6] == "" && own[1] == id.model && own[3] == id.role && own[4] == id.side && one.Live(now) {
			times.add(one, now)
		}
	}
	return times.fractions()
}
