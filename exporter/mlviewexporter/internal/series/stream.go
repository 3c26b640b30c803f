package series

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// Key identifies a stream.
type Key struct {
	Series Series
	Labels Labels
}

// Stream is one series with one set of labels. What an Update needs comes first and
// close together: a fleet has tens of thousands of streams, and reading their memory is
// most of the time that an Update takes.
type Stream struct {
	// origin is the Origin of its last Point, after the stream that got an Update
	// after it the last time.
	origin uint64
	after  *Stream

	Value, Count float64
	// Gone reports whether the stream has ended, At is when its last point
	// arrived.
	At   time.Time
	Gone bool
	// NoNumber reports whether it has ended with a value that is no finite number.
	NoNumber bool
	// Overflow and Simulated are those of its last Point.
	Overflow, Simulated bool

	// Time is the time of its last point, in Unix seconds by its producer's clock.
	Time float64
	// Moved is when its value changed last, in nanoseconds since 1970.
	Moved int64
	// Recent are earlier values of counters and histograms, nextRecent is when there is
	// another one.
	Recent     *samples
	nextRecent float64
	// Run, if there is one, and Owner are what the stream belongs to, Host is the one
	// that the stream is news of, nil if it is of none, and Sender the collector that
	// sends it, nil if that is not known.
	Run    runOwner
	Owner  Owner
	Host   *silence.Sender
	Sender *fleet.Sender
	Key
}

// New returns a stream without a value.
func New(key Key) *Stream {
	one := &Stream{Key: key}
	switch definitions[key.Series].Kind {
	case counter:
		one.Recent = newSamples(RateWindow)
	case histogram:
		one.Recent = newSamples(meanWindow)
	}
	return one
}

// Live reports whether the stream has a current value. What a silent collector said last
// of a run, a host or a GPU stays until the collector leaves the page.
func (s *Stream) Live(now time.Time) bool {
	if s.Sender != nil && (s.Labels.Run != "" || s.Labels.Host != "") && !s.Sender.Forgotten && s.Sender.Silent(now) {
		now = s.Sender.Last
	}
	return !s.Gone && now.Sub(s.At) <= GoneAfter
}

// Old reports whether the value has not been sent for a while, although it may be live.
func (s *Stream) Old(now time.Time) bool { return now.Sub(s.At) > GoneAfter }

// Lasts reports whether the problem of a stream lasts: until the stream ends. If its
// sender is silent, it lasts as long as one of its kind does without new evidence.
func (s *Stream) Lasts(now time.Time) bool {
	kind, _ := mlattr.ProblemNamed(s.Labels.Own[0])
	return !s.Gone && now.Sub(s.At) <= max(GoneAfter, kind.EndsAfter())
}

// Update takes a point over. It reports whether there is a value, and whether it is
// another one than before.
func (s *Stream) Update(p *Update, now time.Time) (ok, changed bool) {
	if p.Gone {
		s.Gone = true
		return false, false
	}
	if !(math.Abs(p.Value) <= MaxValue && p.Count <= MaxValue) {
		// The last good value is no current one.
		s.Gone, s.NoNumber, s.At = true, true, now
		return false, false
	}
	value, count := p.Value, p.Count
	if p.Delta {
		value, count = min(s.Value+value, MaxValue), min(s.Count+count, MaxValue)
	}
	if s.Recent != nil && (s.Gone || value < s.Value || count < s.Count) {
		s.Recent.n, s.nextRecent = 0, 0 // the counter has started again
	}
	s.Time = pointTime(p.Time, now)
	if s.Recent != nil && s.Time >= s.nextRecent {
		s.Recent.add(sample{s.Time, value, count})
		s.nextRecent = s.Time + s.Recent.spacing
	}
	if s.At.IsZero() || value != s.Value || count != s.Count {
		s.Moved = now.UnixNano()
	}
	changed = value != s.Value
	s.Value, s.Count, s.At, s.Gone, s.NoNumber = value, count, now, false, false
	return true, changed
}

// MaxValue is the largest value that is believed. It is far above real ones, and
// sums of all streams are finite. NaN is not below it.
const MaxValue = 1e30

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
	RateWindow = 60.0
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

// rate returns the increase of the value per second, and over how many seconds that is.
// ok is false with fewer than two values, and if the last one is old.
func (s *Stream) rate(now time.Time) (rate, over float64, ok bool) {
	first, ok := s.first(now)
	over = s.Time - first.at
	ok = ok && now.Sub(s.At).Seconds() <= max(1.5*RateWindow, 2*over)
	return (s.Value - first.value) / over, over, ok
}

// first returns the oldest value of the window, or the newest one before it if there is none
// within, if there is a current one.
func (s *Stream) first(now time.Time) (first sample, ok bool) {
	if s.Recent == nil || !s.Live(now) {
		return first, false
	}
	for _, one := range s.Recent.ring[:s.Recent.n] {
		if one.at >= s.Time {
			break
		}
		first, ok = one, true
		if s.Time-one.at <= s.Recent.window {
			break
		}
	}
	return first, ok
}

// Increase returns how much value and count have grown over the window.
func (s *Stream) Increase(now time.Time) (value, count float64, ok bool) {
	first, ok := s.first(now)
	return s.Value - first.value, s.Count - first.count, ok
}

// GoneAfter is how long a stream counts without a new point. The prometheus
// exporter of the shipped configurations shows a series for as long.
const GoneAfter = 5 * time.Minute

// runOwner is the run that streams belong to.
type runOwner interface {
	// Updated takes over what a point of a stream says of the run besides its value.
	// changed reports whether it says anything new: most points of a fleet repeat the
	// last one.
	Updated(one *Stream, changed bool, now time.Time)
}

// Owner is what streams belong to besides a run.
type Owner interface {
	// Add adds a stream, and reports whether that is within a limit.
	Add(one *Stream, limit int) bool
}

// Group has the streams of an owner.
type Group struct{ Streams []*Stream }

// Add adds a stream, and reports whether that is within a limit.
func (g *Group) Add(one *Stream, limit int) bool {
	if len(g.Streams) >= limit {
		return false
	}
	g.Streams = append(g.Streams, one)
	return true
}

// DropGone removes the streams without a current value. Those of runs stay with
// their runs, whose totals they are.
func (g *Group) DropGone(from *Table, now time.Time) {
	g.Streams = slices.DeleteFunc(g.Streams, func(one *Stream) bool {
		if one.Run != nil || one.Live(now) {
			return false
		}
		from.Remove(one)
		return true
	})
}

// Leave removes the streams of an owner that goes. Those of runs stay.
func (g *Group) Leave(from *Table) {
	for _, one := range g.Streams {
		if one.Owner = nil; one.Run == nil {
			from.Remove(one)
		}
	}
}

// Total is the sum and the largest of some numbers. Of rates, over is the longest time
// in seconds that one covers.
type Total struct {
	Sum, Most, Over float64
	N               int
}

// Add adds a number.
func (t *Total) Add(v float64) {
	if t.N == 0 || v > t.Most {
		t.Most = v
	}
	t.Sum += v
	t.N++
}

// AddRate adds the rate of a counter, if it has one.
func (t *Total) AddRate(one *Stream, now time.Time) {
	if rate, over, ok := one.rate(now); ok {
		t.Add(rate)
		t.Over = max(t.Over, over)
	}
}

// Largest returns the largest number, nil without any.
func (t Total) Largest() *float64 { return t.known(t.Most) }

// All returns the sum, nil without numbers.
func (t Total) All() *float64 { return t.known(t.Sum) }

// Mean returns the mean, nil without numbers.
func (t Total) Mean() *float64 { return t.known(t.Sum / float64(t.N)) }

func (t Total) known(v float64) *float64 {
	if t.N == 0 {
		return nil
	}
	return api.Finite(v)
}

// Labels tell the streams of a series apart. Fields that do not apply are empty.
type Labels struct {
	Namespace, Service string
	Run, Job, Rank     string
	Host               string
	// GPU is hw.id.
	GPU string
	// Collector is the name of the collector that has computed the series; a Store
	// sets it from Point.From.
	Collector string
	// Own are the values of Series.Own.
	Own [MaxOwn]string
}

// Keep makes the labels copies that share no memory with what was received.
func (l *Labels) Keep(texts *kept.Texts) {
	for _, text := range [...]*string{&l.Namespace, &l.Service, &l.Run, &l.Job, &l.Rank, &l.Host, &l.GPU, &l.Collector} {
		*text = texts.Of(*text)
	}
	for i, text := range l.Own {
		l.Own[i] = texts.Of(text)
	}
}

// Point is one value of a stream.
type Point struct {
	Update
	Series Series
	Labels Labels
	// Sender has sent the point, zero for the collector itself.
	Sender share.Sender
	// From is the collector that has sent the point.
	From fleet.Connection
	// GPU describes the device of a point of a GPU, nil for other points. Points
	// of one request may share it.
	GPU *Device
	// Simulated reports whether the value is simulated or recorded.
	Simulated bool
	// Overflow reports that the point stands for data that another component had no
	// room for.
	Overflow bool
}

// Update is what is new in a point of a stream that is known by the Origin of an earlier
// Point.
type Update struct {
	// Origin is a hash of all that the other fields of a Point are read from. Points with
	// the same one differ only in what an Update has. 0 means that there is none.
	Origin uint64
	// Value is the value, of a histogram its sum. Count is a histogram's count.
	Value, Count float64
	// Time is the point's time in nanoseconds since 1970, by its producer's clock.
	Time int64
	// Gone reports that the stream has ended: a point without a value. Delta reports that
	// Value and Count are increases.
	Gone, Delta bool
}

// Device is what points say of a GPU besides their values.
type Device = gpupoint.Device

// Unix returns the time of seconds since 1970, in UTC, nil for times that no clock shows.
func Unix(seconds float64) *time.Time {
	if !(seconds > 0 && seconds < 1e11) {
		return nil
	}
	whole := int64(seconds)
	return api.TimeOf(time.Unix(whole, int64((seconds-float64(whole))*1e9)))
}
