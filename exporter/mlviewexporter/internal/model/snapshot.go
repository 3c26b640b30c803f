package model

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// takeState computes the State. The rows share nothing with the model that
// changes.
func (s *Store) takeState(now time.Time) *State {
	s.history.record(s, now)
	s.prune(now)
	s.holdGPUs(now)
	state := &State{Version: SchemaVersion, Time: now.UTC(), Collector: s.collector(now)}
	state.GPUs = s.gpuRows(now)
	state.Failures = limited(state, "failures", s.failures.rows("", s.keyOfRun, s.simulated, now), maxFailures)
	state.Collectors = s.senders.rows(now)
	state.Needs = s.needRows(state, now)
	state.Resolved = s.resolvedRows(state, now)
	state.Runs = s.runRows(now)
	state.Calls = s.calls.rows("", s.callTimes(now), s.simulated)
	state.Pools = s.poolRows(now)
	state.Models = s.modelRows(now)
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
	if len(s.gpus) == 0 {
		return nil
	}
	withGPU := make(map[string]bool)
	for id := range s.gpus {
		withGPU[id.host] = true
	}
	without := slices.DeleteFunc(slices.Sorted(maps.Keys(s.hosts.all)), func(host string) bool { return withGPU[host] })
	return without[:min(len(without), maxNamedHosts)]
}

func (s *Store) runRows(now time.Time) []Run {
	rows := make([]Run, 0, len(s.runs))
	for _, r := range s.runs {
		rows = append(rows, s.runRow(r, now))
	}
	slices.SortFunc(rows, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Key, b.Key))
	})
	return rows
}

func (s *Store) gpuRows(now time.Time) []GPU {
	ordered := make([]*gpu, 0, len(s.gpus))
	for _, g := range s.gpus {
		ordered = append(ordered, g)
	}
	slices.SortFunc(ordered, compareGPUs)
	rows := make([]GPU, 0, len(ordered))
	for _, g := range ordered {
		rows = append(rows, s.gpuRow(g, now))
	}
	return rows
}

// limited returns the first rows of a list, and counts the others as hidden.
func limited[T any](state *State, list string, rows []T, limit int) []T {
	if more := len(rows) - limit; more > 0 {
		state.Collector.Hidden[list] += more
		return rows[:limit]
	}
	return rows
}
