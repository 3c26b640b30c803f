package model

import (
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

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
