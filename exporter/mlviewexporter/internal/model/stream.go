package model

import (
	"math"
	"time"
)

// streamKey identifies a stream.
type streamKey struct {
	series Series
	labels Labels
}

// stream is one series with one set of labels.
type stream struct {
	streamKey
	value, count float64
	// gone reports whether the stream has ended, at is when its last point
	// arrived.
	gone bool
	at   time.Time
	// time is the time of its last point, in Unix seconds by its producer's clock.
	time float64
	// noNumber reports whether it has ended with a value that is no finite number.
	noNumber bool
	// recent are earlier values of counters and histograms, before is the value
	// when the run became slow, nil if it has not since the stream began.
	recent *samples
	before *sample
	// removed reports whether the run of the stream was removed.
	removed bool
	// simulated is Point.Simulated.
	simulated bool
	// run, if there is one, and owner are what the stream belongs to.
	run   *run
	owner any
	// next is another stream with the same hash.
	next *stream
}

// live reports whether the stream has a current value.
func (s *stream) live(now time.Time) bool { return !s.gone && now.Sub(s.at) <= goneAfter }

// update takes a point over and reports whether a new value came.
func (s *stream) update(p *Point, now time.Time) {
	value, count := p.Value, p.Count
	if p.Delta {
		value, count = min(s.value+value, maxValue), min(s.count+count, maxValue)
	}
	if s.recent != nil {
		if s.gone || value < s.value || count < s.count {
			s.recent.reset() // the counter has started again
			s.before = nil
		}
		s.recent.add(pointTime(p.Time, now), value, count)
	}
	s.time = pointTime(p.Time, now)
	s.value, s.count, s.at, s.gone, s.noNumber, s.simulated = value, count, now, false, false, p.Simulated
}

// pointTime returns a point's own time in seconds, or the time of its arrival if
// its clock is far off.
func pointTime(at int64, now time.Time) float64 {
	own := float64(at) / 1e9
	arrived := float64(now.UnixNano()) / 1e9
	if math.Abs(own-arrived) > 60 {
		return arrived
	}
	return own
}

// Windows of rates and means, in seconds.
const (
	rateWindow = 60.0
	meanWindow = 300.0
)

// sample is a value of a counter or histogram at a time in seconds.
type sample struct{ at, value, count float64 }

// samples are values of a counter or histogram over a window: the newest one,
// and earlier ones that are spread over it.
type samples struct {
	window float64
	last   sample
	ring   [10]sample
	n      int
}

func (s *samples) reset() { s.n, s.last = 0, sample{} }

// add adds a value. A value that is not newer replaces the last one.
func (s *samples) add(at, value, count float64) {
	if s.n > 0 && at < s.last.at {
		return
	}
	s.last = sample{at, value, count}
	if s.n > 0 && at-s.ring[s.n-1].at < s.window/float64(len(s.ring)-2) {
		return
	}
	if s.n == len(s.ring) {
		copy(s.ring[:], s.ring[1:])
		s.n--
	}
	s.ring[s.n] = s.last
	s.n++
}

// first returns the oldest value within the window before the last one, or the
// newest value before the window if there is none within.
func (s *samples) first() (earlier sample, ok bool) {
	for i := range s.n {
		one := s.ring[i]
		if one.at >= s.last.at {
			break
		}
		earlier, ok = one, true
		if s.last.at-one.at <= s.window {
			break
		}
	}
	return earlier, ok
}

// rate returns the increase of the value per second. ok is false with fewer than
// two values, and if the last one is old.
func (s *stream) rate(now time.Time) (rate float64, ok bool) {
	if s.recent == nil || !s.live(now) {
		return 0, false
	}
	first, ok := s.recent.first()
	if !ok {
		return 0, false
	}
	took := s.recent.last.at - first.at
	if now.Sub(s.at).Seconds() > max(1.5*rateWindow, 2*took) {
		return 0, false
	}
	return (s.recent.last.value - first.value) / took, true
}

// increase returns how much value and count have grown over the window.
func (s *stream) increase(now time.Time) (value, count float64, ok bool) {
	if s.recent == nil || !s.live(now) {
		return 0, 0, false
	}
	first, ok := s.recent.first()
	if !ok {
		return 0, 0, false
	}
	return s.recent.last.value - first.value, s.recent.last.count - first.count, true
}
