package model

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/failures"
)

// takeState computes the State. The rows share nothing with the model that
// changes.
func (s *Store) takeState(now time.Time) *api.State {
	s.runs.Record(now)
	s.prune(now)
	s.runs.HoldGPUs(now)
	state := &api.State{Version: api.SchemaVersion, Time: now.UTC(), Collector: s.collector(now)}
	state.GPUs = s.gpus.Rows(s.runs.Holder, now)
	state.Failures = limited(state, "failures", s.failures.Rows("", s.runs.KeyOf, s.services.Simulated, now), failures.MaxFailures)
	state.Collectors = s.senders.Rows(now)
	state.Needs = s.problems.needRows(state, now)
	state.Resolved = s.problems.resolvedRows(state, now)
	state.Runs = s.runs.Rows(now)
	state.Calls = s.calls.Rows("", s.services.CallTimes(now), s.services.Simulated)
	state.Pools = s.poolRows(now)
	state.Models = s.models.Rows(now)
	state.Changes = s.changes.Rows()
	countGPUs(state)
	for i := range state.Runs {
		state.Collector.Simulated = state.Collector.Simulated || state.Runs[i].Simulated
	}
	state.Missing = s.missing.rows(state, now)
	return state
}

func (s *Store) collector(now time.Time) api.Collector {
	arrived := s.arrived
	if arrived.IsZero() {
		arrived = s.counted // of collectors that do not say when data came
	}
	c := api.Collector{
		Version: s.settings.Version, Started: s.started.UTC(), DataTime: api.TimeOf(arrived),
		Interval: s.settings.Interval.Seconds(), Hosts: len(s.hosts.All),
	}
	for _, host := range s.hosts.All {
		if !host.Silent(now) {
			c.HostsReporting++
		}
	}
	c.HostsWithoutGPU = s.gpus.Without(slices.Sorted(maps.Keys(s.hosts.All)))
	c.Hidden = s.limits.Hidden()
	if s.settings.JaegerURL != "" {
		c.Links = map[string]string{"jaeger": s.settings.JaegerURL}
	}
	return c
}

// limited returns the first rows of a list, and counts the others as hidden.
func limited[T any](state *api.State, list string, rows []T, limit int) []T {
	if more := len(rows) - limit; more > 0 {
		state.Collector.Hidden[list] += more
		return rows[:limit]
	}
	return rows
}

// Run returns the detail of the run with a key. It is kept as long as the State and
// must not be changed.
func (s *Store) Run(key string) (*api.RunDetail, bool) {
	state := s.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs.ByKey[key]
	if r == nil {
		return nil, false
	}
	if s.detailsOf != state || len(s.details) >= maxDetails {
		s.details, s.detailsOf = make(map[string]*api.RunDetail), state
	}
	if known := s.details[key]; known != nil {
		return known, true
	}
	now := s.settings.Now()
	detail := &api.RunDetail{Run: r.Row(now), Needs: []api.Need{}}
	for _, need := range state.Needs {
		if need.Run == key {
			detail.Needs = append(detail.Needs, need)
		}
	}
	detail.Ranks, detail.MissingRanks = r.RankRows()
	detail.Phases = r.Phases(now)
	detail.TimeRatio = r.TimeRatio(now)
	detail.Spent = r.Spent.Row()
	detail.Settings = r.Settings()
	detail.Changes = s.changes.Of(key, r.Service, r.Hosts, r.FirstSeen, r.LastSeen)
	detail.Curves = r.Curves.Rows(now, r.StepsEnd(detail.Run.State))
	detail.Marks = s.changes.MarksOf(key, r.Service, r.Hosts, s.failures.Marks(key))
	detail.Calls = s.calls.Rows(key, s.services.CallTimes(now), s.services.Simulated)
	detail.Failures = s.failures.Rows(key, s.runs.KeyOf, s.services.Simulated, now)
	detail.Traces = s.traces.OfRun(key)
	detail.MakeLists()
	s.details[key] = detail
	return detail, true
}

// maxDetails limits the details that are kept for an interval.
const maxDetails = 64

// pruneEvery is the time between two removals of what is gone.
const pruneEvery = time.Minute

// prune removes what has been gone for long.
func (s *Store) prune(now time.Time) {
	if now.Sub(s.pruned) < pruneEvery && !now.Before(s.pruned) {
		return
	}
	s.pruned = now
	history := s.settings.History
	s.runs.Prune(now)
	s.gpus.Prune(s.problems.prune(now), now)
	s.models.Prune(history, now)
	for id, p := range s.pools {
		if p.DropGone(s.streams, now); len(p.Streams) == 0 {
			delete(s.pools, id)
		}
	}
	s.services.Prune(s.streams, now)
	s.missing.DropGone(s.streams, now)
	s.hosts.Prune(history, now)
	s.senders.Prune(history, now)
	s.limits.Prune(now)
	s.changes.Prune(now)
	s.failures.Prune(now)
}
