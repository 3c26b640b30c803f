package mlmetricsconnector

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// maxServices limits the services whose requests are remembered.
const maxServices = 1024

// outcomes has the outcomes of the newest requests of each service. It is safe
// for concurrent use.
type outcomes struct {
	mu  sync.Mutex
	all map[streams.Resource]*service
}

type service struct {
	pace.Requests
	// failing is since when the service fails, zero if it does not.
	failing time.Time
}

func newOutcomes() *outcomes { return &outcomes{all: make(map[streams.Resource]*service)} }

// errorTypeOfRequest is the index of error.type in the labels of series.Requests.
const errorTypeOfRequest = 3

// observe adds the requests among updates that arrived at now.
func (s *outcomes) observe(updates []streams.Update, now time.Time) {
	var of *streams.Source
	var known *service
	for i := range updates {
		u := &updates[i]
		if u.Series != series.Requests {
			continue
		}
		if of == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
		}
		if of == nil || of != u.Source && of.Resource != u.Source.Resource {
			known = s.of(u.Source.Resource)
		}
		of = u.Source
		if known != nil {
			known.Add(now, u.Labels[errorTypeOfRequest] != "")
		}
	}
}

// of returns a service, or nil beyond the limit.
func (s *outcomes) of(resource streams.Resource) *service {
	known := s.all[resource]
	if known == nil && len(s.all) < maxServices {
		known = &service{}
		s.all[resource.Clone()] = known
	}
	return known
}

// conclude adds the error ratios of all services to the store, and removes
// services without requests for longer than expiration; 0 removes none.
func (s *outcomes) conclude(store *streams.Store, expiration time.Duration, now time.Time) (over streams.Overflowed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for resource, known := range s.all {
		if expiration > 0 && now.Sub(known.Newest()) > expiration {
			delete(s.all, resource)
			continue
		}
		e := emission{source: streams.Source{Resource: resource}, now: now}
		ratios := known.Ratios(now)
		if ratios.Recent >= 0 {
			e.value(series.RequestErrorRatio, ratios.Recent, series.WindowRecent)
		}
		if ratios.Usual >= 0 {
			e.value(series.RequestErrorRatio, ratios.Usual, series.WindowUsual)
		}
		switch {
		case !ratios.Failing:
			known.failing = time.Time{}
		case known.failing.IsZero():
			known.failing = ratios.Since
		}
		if ratios.Failing {
			e.problem(series.Failing, known.failing)
		}
		over.Add(store.Apply(e.updates, now))
	}
	return over
}
