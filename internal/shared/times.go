package shared

import "time"

// Later returns the latest of times.
func Later(at time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if other.After(at) {
			at = other
		}
	}
	return at
}

// Earlier returns the earlier of two times, of which a zero one is unknown.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
