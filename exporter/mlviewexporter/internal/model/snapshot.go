package model

import (
	"maps"
	"slices"
	"time"
)

// takeState computes the State. The rows share nothing with the model that
// changes.
func (s *Store) takeState(now time.Time) *State {
	s.runs.record(now)
	s.prune(now)
	s.runs.holdGPUs(now)
	state := &State{Version: SchemaVersion, Time: now.UTC(), Collector: s.collector(now)}
	state.GPUs = s.gpus.rows(s.runs.holder, now)
	state.Failures = limited(state, "failures", s.failures.rows("", s.runs.keyOf, s.services.simulated, now), maxFailures)
	state.Collectors = s.senders.rows(now)
	state.Needs = s.needRows(state, now)
	state.Resolved = s.resolvedRows(state, now)
	state.Runs = s.runs.rows(now)
	state.Calls = s.calls.rows("", s.services.callTimes(now), s.services.simulated)
	state.Pools = s.poolRows(now)
	state.Models = s.models.rows(now)
	state.Changes = s.changes.rows()
	s.countGPUs(state)
	for i := range state.Runs {
		state.Collector.Simulated = state.Collector.Simulated || state.Runs[i].Simulated
	}
	state.Missing = s.missingRows(state, now)
	return state
}

func (s *Store) collector(now time.Time) Collector {
	arrived := s.arrived
	if arrived.IsZero() {
		arrived = s.counted // of collectors that do not say when data came
	}
	c := Collector{
		Version: s.settings.Version, Started: s.started.UTC(), DataTime: timePointer(arrived),
		Interval: s.settings.Interval.Seconds(), Hosts: len(s.hosts.all),
	}
	for _, host := range s.hosts.all {
		if !host.Silent(now) {
			c.HostsReporting++
		}
	}
	c.HostsWithoutGPU = s.hostsWithoutGPU()
	c.Hidden = s.limits.hidden()
	if s.settings.JaegerURL != "" {
		c.Links = map[string]string{"jaeger": s.settings.JaegerURL}
	}
	return c
}

// maxNamedHosts limits Collector.HostsWithoutGPU.
const maxNamedHosts = 16

// hostsWithoutGPU returns hosts of which no GPU is known, none without any GPU.
func (s *Store) hostsWithoutGPU() []string {
	if len(s.gpus.all) == 0 {
		return nil
	}
	withGPU := make(map[string]bool)
	for id := range s.gpus.all {
		withGPU[id.host] = true
	}
	without := slices.DeleteFunc(slices.Sorted(maps.Keys(s.hosts.all)), func(host string) bool { return withGPU[host] })
	return without[:min(len(without), maxNamedHosts)]
}

// limited returns the first rows of a list, and counts the others as hidden.
func limited[T any](state *State, list string, rows []T, limit int) []T {
	if more := len(rows) - limit; more > 0 {
		state.Collector.Hidden[list] += more
		return rows[:limit]
	}
	return rows
}
