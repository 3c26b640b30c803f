package model

// Run returns the detail of the run with a key. It is kept as long as the State and
// must not be changed.
func (s *Store) Run(key string) (*RunDetail, bool) {
	state := s.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs.byKey[key]
	if r == nil {
		return nil, false
	}
	if s.detailsOf != state || len(s.details) >= maxDetails {
		s.details, s.detailsOf = make(map[string]*RunDetail), state
	}
	if known := s.details[key]; known != nil {
		return known, true
	}
	now := s.settings.Now()
	detail := &RunDetail{Run: r.row(now), Needs: []Need{}}
	for _, need := range state.Needs {
		if need.Run == key {
			detail.Needs = append(detail.Needs, need)
		}
	}
	detail.Ranks, detail.MissingRanks = r.rankRows()
	detail.Phases = r.phases(now)
	detail.TimeRatio = r.timeRatio(now)
	detail.Spent = r.spent.row()
	detail.Settings = r.settings()
	detail.Changes = s.changes.of(key, r.service, r.hosts, r.firstSeen, r.lastSeen)
	detail.Curves = r.curves.rows(now, r.stepsEnd(detail.Run.State))
	detail.Marks = s.changes.marksOf(key, r.service, r.hosts, s.failures.marks(key))
	detail.Calls = s.calls.rows(key, s.services.callTimes(now), s.services.simulated)
	detail.Failures = s.failures.rows(key, s.runs.keyOf, s.services.simulated, now)
	detail.Traces = s.traces.ofRun(key)
	detail.MakeLists()
	s.details[key] = detail
	return detail, true
}

// maxDetails limits the details that are kept for an interval.
const maxDetails = 64
