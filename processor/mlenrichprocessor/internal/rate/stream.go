package rate

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatautil"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// How many streams are remembered, and for how long after their last point.
const (
	maxStreams = 32768
	streamAge  = 15 * time.Minute
)

// Streams remembers the newest point of each stream of tokens. It is safe for
// concurrent use.
type Streams struct {
	cache.Locked[streamKey, newest]
	// Instances counts the instances of the processor. Two pipelines may get the same
	// points from one receiver, so each instance has streams of its own.
	Instances atomic.Uint32
}

// NewStreams returns an empty Streams.
func NewStreams(now func() time.Time) *Streams {
	return &Streams{Locked: cache.NewLocked[streamKey, newest]("streams", now, maxStreams, streamAge)}
}

// streamKey identifies a stream: the metric of a scope of a resource with its
// attributes, as it came.
type streamKey struct {
	instance uint32
	hash     [16]byte
}

// reading is one point of a client's counter or histogram.
type reading struct {
	// start and at are its times in nanoseconds. A start of 0 is unknown.
	start, at uint64
	// sum is a counter's value or a histogram's sum, and count the number of
	// values in a histogram.
	sum   float64
	count uint64
	// delta is true if the point covers the time from start to at only.
	delta bool
	// mean is true for a histogram of rates, which yields only their mean.
	mean bool
	// reported is true for a rate, which is used as it is.
	reported bool
}

// newest is the last point of a stream that a rate was made from.
type newest struct {
	at    uint64
	sum   float64
	count uint64
}

// advance computes the rates of points, and remembers the newest of each
// stream.
func (s *Streams) advance(points []point, skipped Skipped) {
	if len(points) == 0 {
		return
	}
	now := s.Lock()
	defer s.Unlock()
	for i := range points {
		p := &points[i]
		var first newest
		last := &first
		if !p.delta && !p.reported {
			if known := s.All.Find(p.key, now); known != nil {
				last = known
			}
		}
		var reason Reason
		p.rate, reason = last.rate(p.reading)
		p.rated = reason == ""
		skipped.add(reason)
		if first.at != 0 {
			*s.All.Insert(p.key, now) = first
		}
	}
}

// rate is what the stream gained a second since its last point, or the mean of
// the rates that a histogram of rates gained. There is none for the first point
// of a stream, for one that came twice, and if there is a reason.
func (n *newest) rate(r reading) (rate float64, reason Reason) {
	if r.at == 0 || !(r.sum >= 0) || math.IsInf(r.sum, 0) {
		return 0, invalidValue
	}
	if r.delta || r.reported {
		return r.own()
	}
	before := *n
	switch {
	case before.at == 0:
		*n = newest{r.at, r.sum, r.count}
		return 0, unwanted
	case before == newest{r.at, r.sum, r.count}:
		return 0, unwanted
	case r.at <= before.at:
		return 0, outOfOrder
	case r.sum < before.sum, r.count < before.count, r.start >= before.at && r.start < r.at:
		*n = newest{r.at, r.sum, r.count}
		return 0, counterReset
	}
	gained := reading{start: before.at, at: r.at, sum: r.sum - before.sum, count: r.count - before.count, mean: r.mean}
	rate, reason = gained.own()
	if reason != shortDuration {
		*n = newest{r.at, r.sum, r.count}
	}
	return rate, reason
}

// own is the rate of a point that covers the time from its start.
func (r reading) own() (rate float64, reason Reason) {
	switch {
	case r.reported:
		return r.sum, ""
	case r.mean && r.count == 0:
		return 0, unwanted
	case r.mean:
		return r.sum / float64(r.count), ""
	case r.start == 0:
		return 0, invalidValue
	}
	return divide(r.sum, seconds(r.start, r.at))
}

// A client may count the same tokens more than once: by a counter, by a
// histogram of requests and by a histogram of its engine's steps. A metric that
// repeats another one yields rates only if the other one is not sent, as by a
// server whose counters are not scraped. The two may arrive in different
// requests, so Streams remembers which metrics a resource sends.

// sourceKey is the key under which Streams remembers that a resource sends a
// metric.
func (p *point) sourceKey(metric string) streamKey {
	return streamKey{p.key.instance, pdatautil.Hash(pdatautil.WithString("counts"),
		pdatautil.WithString(string(p.from[:])), pdatautil.WithString(metric))}
}

// withoutRepeats removes the points of metrics that repeat another one, if the
// resource sent that one less than streamAge ago.
func (s *Streams) withoutRepeats(points []point) []point {
	concerned := func(p point) bool { return p.meaning.Repeated || len(p.meaning.Repeats) > 0 }
	if !slices.ContainsFunc(points, concerned) {
		return points
	}
	now := s.Lock()
	defer s.Unlock()
	var last *vocabulary.Meaning // the points of a metric are adjacent
	for i := range points {
		p := &points[i]
		if p.meaning != last && p.meaning.Repeated {
			*s.All.Ensure(p.sourceKey(p.meaning.Source), now) = newest{at: uint64(now.UnixNano())}
		}
		last = p.meaning
	}
	last = nil
	repeats := false
	return slices.DeleteFunc(points, func(p point) bool {
		if p.meaning != last {
			last = p.meaning
			repeats = slices.ContainsFunc(p.meaning.Repeats, func(other string) bool {
				// Peek, since asking must not keep a metric known that is no
				// longer sent.
				known := s.All.Peek(p.sourceKey(other))
				return known != nil && now.UnixNano()-int64(known.at) <= int64(streamAge)
			})
		}
		return repeats
	})
}
