package mlmetricsconnector

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// outcomes has what services have done of late. It is safe for concurrent use.
type outcomes struct {
	mu    sync.Mutex
	fleet *serving.Fleet
}

func newOutcomes() *outcomes { return &outcomes{fleet: serving.NewFleet()} }

// observe adds the spans of r, which arrived at now.
func (s *outcomes) observe(r *reader, now time.Time) {
	if len(r.served) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range r.units {
		u := &r.units[i]
		if u.served == 0 {
			continue
		}
		span := &r.served[u.served-1]
		if u.is&isCounted != 0 {
			span.Kind |= serving.Request
		}
		if u.is&isCalled != 0 {
			span.Kind |= serving.Tool | serving.Call
		}
		s.fleet.Observe(u.source.Resource, span, now)
	}
}

// newest returns when the newest span of a service arrived, zero if it is not known.
func (s *outcomes) newest(of streams.Resource) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Newest(of)
}

// conclude adds the error ratios of all services to the store and their problems to
// the board. A service without spans for longer than expiration has neither; 0 is
// forever.
func (s *outcomes) conclude(store *streams.Store, board *problem.Board, expiration time.Duration, now time.Time) (over streams.Overflowed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet.Report(now, expiration, func(resource streams.Resource, ratios serving.Ratios) {
		e := emission{source: streams.Source{Resource: resource}, now: now}
		if ratios.Recent >= 0 {
			e.value(series.RequestErrorRatio, ratios.Recent, mlattr.WindowRecent)
		}
		if ratios.Usual >= 0 {
			e.value(series.RequestErrorRatio, ratios.Usual, mlattr.WindowUsual)
		}
		over.Add(store.Apply(e.updates, now))
	}, board.Report)
	return over
}
