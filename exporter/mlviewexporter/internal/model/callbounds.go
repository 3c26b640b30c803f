package model

import "time"

// calledID identifies the function that calls of a service call.
type calledID struct{ service, library, function string }

// callTimes is what time was spent on, by cause, in seconds: within the last minute, and
// since the start.
type callTimes struct{ recent, all map[string]float64 }

// add adds a stream of CallTime.
func (s *callTimes) add(one *stream, now time.Time) {
	if s.all == nil {
		s.recent, s.all = make(map[string]float64), make(map[string]float64)
	}
	cause := one.labels.Own[0]
	s.all[cause] += one.value
	if grown, _, ok := one.increase(now); ok {
		s.recent[cause] += grown
	}
}

// fractions returns the fractions of the last minute, else of all time, by cause,
// and nil if no time was spent.
func (s *callTimes) fractions() map[string]float64 {
	for _, seconds := range [...]map[string]float64{s.recent, s.all} {
		sum := 0.0
		for _, part := range seconds {
			sum += part
		}
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

// callTimes returns what the time of calls was callTimes on, by function.
func (s *services) callTimes(now time.Time) map[calledID]*callTimes {
	times := make(map[calledID]*callTimes)
	for id, of := range s.all {
		for _, one := range of.streams {
			own := &one.labels.Own
			if one.series != CallTime || own[6] == "" || !one.live(now) {
				continue
			}
			called := calledID{id.name, own[5], own[6]}
			if times[called] == nil {
				times[called] = new(callTimes)
			}
			times[called].add(one, now)
		}
	}
	return times
}

// requestTimes returns what the time of the service's requests to a model was callTimes
// on.
func (of *service) requestTimes(id modelID, now time.Time) map[string]float64 {
	var times callTimes
	for _, one := range of.streams {
		own := &one.labels.Own
		if one.series == CallTime && own[6] == "" && own[1] == id.model && own[3] == id.role && own[4] == id.side && one.live(now) {
			times.add(one, now)
		}
	}
	return times.fractions()
}
