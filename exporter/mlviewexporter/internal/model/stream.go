package model

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// streamKey identifies a stream.
type streamKey struct {
	series Series
	labels Labels
}

// stream is one series with one set of labels. What an Update needs comes first and
// close together: a fleet has tens of thousands of streams, and reading their memory is
// most of the time that an Update takes.
type stream struct {
	// origin is the Origin of its last Point, after the stream that got an Update
	// after it the last time.
	origin uint64
	after  *stream

	value, count float64
	// gone reports whether the stream has ended, at is when its last point
	// arrived.
	at   time.Time
	gone bool
	// noNumber reports whether it has ended with a value that is no finite number.
	noNumber bool
	// overflow and simulated are those of its last Point.
	overflow, simulated bool
	// removed reports whether the run of the stream was removed.
	removed bool

	// time is the time of its last point, in Unix seconds by its producer's clock.
	time float64
	// moved is when its value changed last, in nanoseconds since 1970.
	moved int64
	// recent are earlier values of counters and histograms, nextRecent is when there is
	// another one. before is the value when the run became slow, nil if it has not since
	// the stream began.
	recent     *samples
	nextRecent float64
	before     *sample
	// run, if there is one, and owner are what the stream belongs to, host is the one
	// that the stream is news of, nil if it is of none, and sender the collector that
	// sends it, nil if that is not known.
	run    runOwner
	owner  owner
	host   *silence.Sender
	sender *sender

	streamKey
	// next is another stream with the same hash.
	next *stream
}

// newStream returns a stream without a value.
func newStream(key streamKey) *stream {
	one := &stream{streamKey: key}
	switch definitions[key.series].kind {
	case counter:
		one.recent = newSamples(rateWindow)
	case histogram:
		one.recent = newSamples(meanWindow)
	}
	return one
}

// runOwner is the run that streams belong to.
type runOwner interface {
	// updated takes over what a point of a stream says of the run besides its value.
	// changed reports whether it says anything new: most points of a fleet repeat the
	// last one.
	updated(one *stream, changed bool, now time.Time)
}

// owner is what streams belong to besides a run.
type owner interface {
	// dropRemoved forgets the streams that were removed with their run.
	dropRemoved()
}

// group has the streams of an owner.
type group struct{ streams []*stream }

// add adds a stream, and reports whether that is within a limit.
func (g *group) add(one *stream, limit int) bool {
	if len(g.streams) >= limit {
		return false
	}
	g.streams = append(g.streams, one)
	return true
}

func (g *group) dropRemoved() {
	g.streams = slices.DeleteFunc(g.streams, func(one *stream) bool { return one.removed })
}

// dropGone removes the streams without a current value. Those of runs stay with
// their runs, whose totals they are.
func (g *group) dropGone(from *streamTable, now time.Time) {
	g.streams = slices.DeleteFunc(g.streams, func(one *stream) bool {
		if one.run != nil || one.live(now) {
			return false
		}
		from.remove(one)
		return true
	})
}

// leave removes the streams of an owner that goes. Those of runs stay.
func (g *group) leave(from *streamTable) {
	for _, one := range g.streams {
		if one.owner = nil; one.run == nil {
			from.remove(one)
		}
	}
}

// live reports whether the stream has a current value. What a silent collector said last
// of a run, a host or a GPU stays until the collector leaves the page.
func (s *stream) live(now time.Time) bool {
	if s.sender != nil && (s.labels.Run != "" || s.labels.Host != "") && !s.sender.forgotten && s.sender.Silent(now) {
		now = s.sender.Last
	}
	return !s.gone && now.Sub(s.at) <= goneAfter
}

// old reports whether the value has not been sent for a while, although it may be live.
func (s *stream) old(now time.Time) bool { return now.Sub(s.at) > goneAfter }

// lasts reports whether the problem of a stream lasts: until the stream ends. If its
// sender is silent, it lasts as long as one of its kind does without new evidence.
func (s *stream) lasts(now time.Time) bool {
	kind, _ := mlattr.ProblemNamed(s.labels.Own[0])
	return !s.gone && now.Sub(s.at) <= max(goneAfter, kind.EndsAfter())
}

// update takes a point over. It reports whether there is a value, and whether it is
// another one than before.
func (s *stream) update(p *Update, now time.Time) (ok, changed bool) {
	if p.Gone {
		s.gone = true
		return false, false
	}
	if !(math.Abs(p.Value) <= maxValue && p.Count <= maxValue) {
		// The last good value is no current one.
		s.gone, s.noNumber, s.at = true, true, now
		return false, false
	}
	value, count := p.Value, p.Count
	if p.Delta {
		value, count = min(s.value+value, maxValue), min(s.count+count, maxValue)
	}
	if s.recent != nil {
		if s.gone || value < s.value || count < s.count {
			s.recent.n, s.nextRecent = 0, 0 // the counter has started again
			s.before = nil
		}
	}
	s.time = pointTime(p.Time, now)
	if s.recent != nil && s.time >= s.nextRecent {
		s.recent.add(sample{s.time, value, count})
		s.nextRecent = s.time + s.recent.spacing
	}
	if s.at.IsZero() || value != s.value || count != s.count {
		s.moved = now.UnixNano()
	}
	changed = value != s.value
	s.value, s.count, s.at, s.gone, s.noNumber = value, count, now, false, false
	return true, changed
}

// maxValue is the largest value that is believed. It is far above real ones, and
// sums of all streams are finite. NaN is not below it.
const maxValue = 1e30

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

// samples are earlier values of a counter or histogram, which are spread over a
// window.
type samples struct {
	window, spacing float64
	ring            [keptSamples]sample
	n               int
}

const keptSamples = 10

func newSamples(window float64) *samples {
	return &samples{window: window, spacing: window / (keptSamples - 2)}
}

func (s *samples) add(one sample) {
	if s.n == len(s.ring) {
		copy(s.ring[:], s.ring[1:])
		s.n--
	}
	s.ring[s.n] = one
	s.n++
}

// first returns the oldest value within the window before a time, or the newest value
// before the window if there is none within.
func (s *samples) first(before float64) (earlier sample, ok bool) {
	for i := range s.n {
		one := s.ring[i]
		if one.at >= before {
			break
		}
		earlier, ok = one, true
		if before-one.at <= s.window {
			break
		}
	}
	return earlier, ok
}

// rate returns the increase of the value per second, and over how many seconds that is.
// ok is false with fewer than two values, and if the last one is old.
func (s *stream) rate(now time.Time) (rate, over float64, ok bool) {
	if s.recent == nil || !s.live(now) {
		return 0, 0, false
	}
	first, ok := s.recent.first(s.time)
	if !ok {
		return 0, 0, false
	}
	over = s.time - first.at
	if now.Sub(s.at).Seconds() > max(1.5*rateWindow, 2*over) {
		return 0, 0, false
	}
	return (s.value - first.value) / over, over, true
}

// increase returns how much value and count have grown over the window.
func (s *stream) increase(now time.Time) (value, count float64, ok bool) {
	if s.recent == nil || !s.live(now) {
		return 0, 0, false
	}
	first, ok := s.recent.first(s.time)
	if !ok {
		return 0, 0, false
	}
	return s.value - first.value, s.count - first.count, true
}
