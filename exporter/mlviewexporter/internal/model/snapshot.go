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
	state.Needs = s.needRows(state, now)
	state.Resolved = s.resolvedRows(state, now)
	state.Runs = s.runs.Rows(now)
	state.Calls = s.calls.Rows("", s.services.CallTimes(now), s.services.Simulated)
	state.Pools = s.poolRows(now)
	state.Models = s.models.Rows(now)
	state.Changes = s.changes.Rows()
	s.countGPUs(state)
	for i := range state.Runs {
		state.Collector.Simulated = state.Collector.Simulated || state.Runs[i].Simulated
	}
	state.Missing = s.missingRows(state, now)
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
	c.HostsWithoutGPU = s.hostsWithoutGPU()
	c.Hidden = s.limits.Hidden()
	if s.settings.JaegerURL != "" {
		c.Links = map[string]string{"jaeger": s.settings.JaegerURL}
	}
	return c
}

// maxNamedHosts limits Collector.HostsWithoutGPU.
const maxNamedHosts = 16

// hostsWithoutGPU returns hosts of which no GPU is known, none without any GPU.
func (s *Store) hostsWithoutGPU() []string {
	if len(s.gpus.All) == 0 {
		return nil
	}
	withGPU := make(map[string]bool)
	for id := range s.gpus.All {
		withGPU[id.Host] = true
	}
	without := slices.DeleteFunc(slices.Sorted(maps.Keys(s.hosts.All)), func(host string) bool { return withGPU[host] })
	return without[:min(len(without), maxNamedHosts)]
}

// limited returns the first rows of a list, and counts the others as hidden.
func limited[T any](state *api.State, list string, rows []T, limit int) []T {
	if more := len(rows) - limit; more > 0 {
		state.Collector.Hidden[list] += more
		return rows[:limit]
	}
	return rows
}
