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
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// ServiceID identifies a service.
type ServiceID struct{ Namespace, Name string }

// CompareServices orders services by name.
func CompareServices(a, b ServiceID) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

// Service is a program that sends telemetry.
type Service struct {
	ServiceID
	lastSeen time.Time
	origin   share.Origin
	// User is the one that its spans name.
	User string
	// WithoutRun counts the spans without a run.
	WithoutRun int64
	series.Group
}

// Services are the programs that send telemetry.
type Services struct {
	*input.Bounds
	All     map[ServiceID]*Service
	leaving kept.Leaving[*Service]
	// Simulated are the names of those whose data is simulated.
	Simulated map[string]bool
}

// NewServices returns no services.
func NewServices(of *input.Bounds) *Services {
	return &Services{Bounds: of, All: make(map[ServiceID]*Service), Simulated: make(map[string]bool)}
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
		one = &Service{ServiceID: id, origin: from}
		s.All[id] = one
	}
	one.lastSeen = now
	return one
}

// replace forgets a service without series that was seen longest ago, of senders
// that have more than their share.
func (s *Services) replace(now time.Time) bool {
	may := func(one *Service) bool { return s.All[one.ServiceID] == one && len(one.Streams) == 0 }
	next, ok := s.leaving.Next(now, may, func() []*Service {
		all := slices.SortedFunc(maps.Values(s.All), func(a, b *Service) int { return b.lastSeen.Compare(a.lastSeen) })
		return kept.First(s.Limits, all, func(one *Service) (share.Origin, int) { return one.origin, 1 })
	})
	if ok {
		delete(s.All, next.ServiceID)
	}
	return ok
}

// See takes over what a process says of its service, which is nil if there was no room.
func (s *Services) See(source *input.Source, of *Service) {
	if source.Simulated {
		s.SeeSimulated(source.Service)
	}
	if of != nil {
		s.Texts.Set(&of.User, source.User)
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
		if len(of.Streams) == 0 && now.Sub(of.lastSeen) > kept.Week {
			delete(s.All, id)
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

// errorRatios returns ml.request.error.ratio of a service, recent and usual. Of those
// that several collectors have computed, the one with the worst recent one counts.
func (of *Service) errorRatios(now time.Time) (recent, usual *float64) {
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
	cause := one.Labels.Own[0]
	mlattr.Put(&s.all, cause, s.all[cause]+one.Value)
	if grown, _, ok := one.Increase(now); ok {
		mlattr.Put(&s.recent, cause, s.recent[cause]+grown)
	}
}

// fractions returns the fractions of the last minute, else of all time, by cause,
// and nil if no time was spent.
func (s *spent) fractions() map[string]float64 {
	for _, seconds := range [...]map[string]float64{s.recent, s.all} {
		sum := shared.Sum(slices.Collect(maps.Values(seconds)))
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
			shared.Entry(times, calledID{id.Name, own[5], own[6]}, func() *spent { return new(spent) }).add(one, now)
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

// poolID identifies a pool of workers in one process.
type poolID struct{ namespace, service, pool, instance string }

// Pool is a pool of workers: its row, as far as its name says it, and its streams.
type Pool struct {
	api.Pool
	series.Group
}

// Pools are the pools of workers.
type Pools struct {
	*input.Bounds
	streams *series.Table
	all     map[poolID]*Pool
}

// NewPools returns no pools.
func NewPools(of *input.Bounds, streams *series.Table) *Pools {
	return &Pools{Bounds: of, streams: streams, all: make(map[poolID]*Pool)}
}

const (
	// maxPools limits the pools.
	maxPools = 500
	// MaxStreamsOfPool limits the streams of one pool.
	MaxStreamsOfPool = 1000
)

// Of returns the pool of a stream, which it adds if there is room, else nil.
func (s *Pools) Of(one *series.Stream, now time.Time) *Pool {
	l := &one.Labels
	id := poolID{l.Namespace, l.Service, l.Own[0], ""}
	if one.Series.OfWorkers() {
		id.instance = l.Own[1]
	}
	p := s.all[id]
	if p == nil {
		key := api.Key("pool", id.namespace, id.service, id.pool, id.instance)
		if len(s.all) >= maxPools {
			s.Limits.Refuse("pools", key, now)
			return nil
		}
		s.Limits.Accept("pools", key)
		p = &Pool{Pool: api.Pool{Key: key, Service: id.service, Pool: id.pool, Instance: id.instance}}
		s.all[id] = p
	}
	return p
}

// Rows returns the rows of pools. Crashes, breakers and alerts name no
// process. They are in the row of the only process of a pool, else in a row of
// their own.
func (s *Pools) Rows(now time.Time) []api.Pool {
	rows := make([]api.Pool, 0, len(s.all))
	for _, p := range s.all {
		if row, ok := p.row(now); ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b api.Pool) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Key, b.Key))
	})
	for i := 0; i+1 < len(rows); i++ {
		counts, workers := &rows[i], &rows[i+1]
		same := func(other *api.Pool) bool { return other.Service == counts.Service && other.Pool == counts.Pool }
		if counts.Instance == "" && counts.Size == nil && counts.Busy == nil && same(workers) && (i+2 >= len(rows) || !same(&rows[i+2])) {
			workers.Crashes, workers.Breakers, workers.Alerts = counts.Crashes, counts.Breakers, counts.Alerts
			rows = slices.Delete(rows, i, i+1)
		}
	}
	return rows
}

// row returns the row of a pool, and false without a current value. Of the gauges that several
// collectors have computed of the same thing, the one that changed last counts.
func (p *Pool) row(now time.Time) (row api.Pool, ok bool) {
	row = p.Pool
	numbers := map[series.Series]**float64{
		series.PoolSize: &row.Size, series.PoolBusy: &row.Busy, series.PoolIdle: &row.Idle,
		series.WorkerCrashes: &row.Crashes, series.BreakerOpenings: &row.Breakers, series.HealthAlerts: &row.Alerts,
	}
	newest := make(map[series.Key]*series.Stream)
	for _, one := range p.Streams {
		if !one.Live(now) {
			continue
		}
		key := one.Key
		if one.Series.OfWorkers() {
			key.Labels.Collector = ""
		}
		if known := newest[key]; known == nil || one.Moved > known.Moved {
			newest[key] = one
		}
	}
	for key, one := range newest {
		number := numbers[key.Series]
		*number = api.Finite(api.Value(*number) + one.Value)
	}
	return row, len(newest) > 0
}

// Prune removes the pools without current values.
func (s *Pools) Prune(now time.Time) {
	for id, p := range s.all {
		if p.DropGone(s.streams, now); len(p.Streams) == 0 {
			delete(s.all, id)
		}
	}
}
