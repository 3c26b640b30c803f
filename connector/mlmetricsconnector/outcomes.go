package mlmetricsconnector

import (
	"math"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
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
	// models are requests to models, agents those to agents, which also fail if a
	// tool does.
	models, agents pace.Requests
	// failing is since when the service fails, zero if it does not.
	failing time.Time
}

// ratios returns those of the requests of which more fail.
func (s *service) ratios(now time.Time) pace.ErrorRatios {
	models, agents := s.models.Ratios(now), s.agents.Ratios(now)
	if agents.Failing == models.Failing && agents.Recent > models.Recent || agents.Failing && !models.Failing {
		return agents
	}
	return models
}

// newest returns when the newest request came.
func (s *service) newest() time.Time {
	newest := s.models.Newest()
	if agents := s.agents.Newest(); agents.After(newest) {
		return agents
	}
	return newest
}

func newOutcomes() *outcomes { return &outcomes{all: make(map[streams.Resource]*service)} }

// errorTypeOfRequest is the index of error.type in the labels of series.Requests.
const errorTypeOfRequest = 3

// observe adds the requests among updates, and those to agents among units, that
// arrived at now.
func (s *outcomes) observe(units []unit, updates []streams.Update, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of streams.Resource
	var known *service
	find := func(resource streams.Resource) *service {
		if known == nil || of != resource {
			of, known = resource, s.of(resource)
		}
		return known
	}
	for i := range updates {
		if u := &updates[i]; u.Series == series.Requests {
			if to := find(u.Source.Resource); to != nil {
				to.models.Add(now, u.Labels[errorTypeOfRequest] != "")
			}
		}
	}
	for i := range units {
		if u := &units[i]; u.is&isAgent != 0 {
			if to := find(u.source.Resource); to != nil {
				to.agents.Add(now, u.is&isFailure != 0)
			}
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

// conclude adds the error ratios of all services to the store, reports those that
// fail, and removes services without requests for longer than expiration; 0
// removes none.
func (s *outcomes) conclude(store *streams.Store, board *problem.Board, expiration time.Duration, now time.Time) (over streams.Overflowed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for resource, known := range s.all {
		if expiration > 0 && now.Sub(known.newest()) > expiration {
			delete(s.all, resource)
			continue
		}
		e := emission{source: streams.Source{Resource: resource}, now: now, board: board}
		ratios := known.ratios(now)
		if ratios.Recent >= 0 {
			e.value(series.RequestErrorRatio, ratios.Recent, mlattr.WindowRecent)
		}
		if ratios.Usual >= 0 {
			e.value(series.RequestErrorRatio, ratios.Usual, mlattr.WindowUsual)
		}
		switch {
		case !ratios.Failing:
			known.failing = time.Time{}
		case known.failing.IsZero():
			known.failing = ratios.Since
		}
		if ratios.Failing {
			e.problem(problem.Problem{
				Kind: mlattr.ProblemFailing, Onset: known.failing, Telemetry: math.NaN(),
				Value: ratios.Recent, Usual: knownRatio(ratios.Usual), Unit: "1",
			})
		}
		over.Add(store.Apply(e.updates, now))
	}
	return over
}

// knownRatio returns a ratio, or NaN if it is negative, and so unknown.
func knownRatio(ratio float64) float64 {
	if ratio < 0 {
		return math.NaN()
	}
	return ratio
}
