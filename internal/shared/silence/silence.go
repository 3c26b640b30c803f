// Package silence learns how often something sends, and says since when it is silent.
package silence

import "time"

const (
	// sameTime is how far apart the requests of one emission arrive.
	sameTime = 500 * time.Millisecond
	// missed is how many intervals may pass without data, least the least time after
	// which a sender is silent, and unknown that time while its interval is unknown.
	missed  = 3
	least   = 15 * time.Second
	unknown = time.Minute
	longest = 5 * time.Minute
)

// Sender is a host, a client or a collector that sends at intervals. The zero value has
// sent nothing.
type Sender struct {
	// Last is when its newest data arrived.
	Last time.Time
	// Back is when it sent again after its latest silence, zero if there was none.
	Back time.Time
	// Interval is the longest recent time between two arrivals, 0 if unknown.
	Interval time.Duration
}

// After is the time without data after which the sender is silent: three of its
// intervals, and at least 15 seconds.
func (s *Sender) After() time.Duration {
	if s.Interval == 0 {
		return unknown
	}
	return max(least, missed*s.Interval)
}

// Silent reports whether the sender has sent before, and nothing for After.
func (s *Sender) Silent(now time.Time) bool {
	return !s.Last.IsZero() && now.Sub(s.Last) > s.After()
}

// See notes that data has arrived. The interval shrinks slowly, so that a sender of
// several things at different intervals is not silent between them. After a silence it
// doubles at most: an outage is no usual pause, but one that comes again and again is.
func (s *Sender) See(now time.Time) {
	gap := now.Sub(s.Last)
	switch {
	case s.Last.IsZero() || gap < 0: // the first data, or the clock went back
	case gap <= sameTime:
		return
	case s.Interval == 0 || gap <= s.After():
		s.Interval = min(longest, max(gap, s.Interval-s.Interval/16))
	default:
		s.Back = now
		s.Interval = min(longest, gap, 2*max(s.Interval, least/missed))
	}
	s.Last = now
}

// Hear notes that data has arrived at a time that another collector tells, again and
// again, also when nothing arrives any more.
func (s *Sender) Hear(at time.Time) {
	if at.After(s.Last) {
		s.See(at)
	}
}
