package streams

import (
	"sort"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxExemplars is the largest number of exemplars of a histogram between two
// flushes, each in another bucket. A counter has one.
const maxExemplars = 4

// Kept is what a restart does not change of a stream that adds up.
type Kept struct {
	Identity
	// Metric is the name of its series, which is set when it is saved.
	Metric string
	// Labels are those of its series, in order.
	Labels []string
	// OfAll reports whether this is the overflow stream of its series.
	OfAll bool
	// Expired reports whether the stream has expired and its end has not been
	// sent yet.
	Expired bool
	// Start is the beginning of its counts, Updated their latest change, and Shown the time
	// of its first emission.
	Start, Updated, Shown time.Time
	// Count is a whole number, Value the value of a gauge or the sum of a histogram.
	Count int64
	Value float64
	// Buckets are those of a histogram, if it has any.
	Buckets []uint64
}

// stream is the state of one stream. The kind of its series determines the
// fields in use.
type stream struct {
	Kept
	series series.ID
	// hash and index are its key and its place in its shard.
	hash  uint64
	index int
	at    int64
	// bounds are those of the buckets.
	bounds    []float64
	exemplars []exemplar
}

// exemplar is a span that changed a stream since the last flush.
type exemplar struct {
	trace  [16]byte
	span   [8]byte
	at     int64
	value  float64
	bucket int
}

// newStream returns the stream of an update, or without labels the overflow stream of its
// series. It clones the strings: a label may be the beginning of a long text, which a
// stream must not keep in memory.
func newStream(u *Update, labels []string, now time.Time) *stream {
	st := &stream{series: u.Series, Kept: Kept{Identity: Identity{Overflow: true}, OfAll: labels == nil, Start: now}}
	if labels != nil {
		of := u.Source.identity()
		st.Identity, st.Labels = Identity{of.Resource.Clone(), of.Run.Clone(), of.Overflow}, mlattr.Mapped(labels, strings.Clone)
	}
	st.makeBuckets()
	return st
}

// makeBuckets creates the buckets of a histogram.
func (st *stream) makeBuckets() {
	s := &series.All[st.series]
	if s.Kind == series.Histogram {
		st.bounds = s.Bounds(firstOf(st.Labels))
		st.Buckets = make([]uint64, len(st.bounds)+1)
	}
}

func (st *stream) apply(u *Update, now time.Time) {
	if st.Expired {
		st.begin(now)
	}
	if now.After(st.Updated) {
		st.Updated = now
	}
	switch series.All[st.series].Kind {
	case series.Counter:
		if sum := st.Count + u.Count; sum >= st.Count {
			st.Count = sum // else it would wrap round: it stays at what it is
		}
		st.show(u, float64(u.Count), 0, 1)
	case series.Balance:
		if sum := st.Count + u.Count; sum >= st.Count || u.Count < 0 {
			st.Count = max(0, sum)
		}
	case series.Total:
		st.Value += u.Value
	case series.Gauge, series.State:
		if u.At >= st.at || series.All[st.series].Momentary {
			st.Value, st.at = u.Value, u.At
		}
	case series.Histogram:
		st.Count++
		st.Value += u.Value
		bucket := sort.SearchFloat64s(st.bounds, u.Value)
		st.Buckets[bucket]++
		st.show(u, u.Value, bucket, maxExemplars)
	}
}

// begin restarts an expired stream.
func (st *stream) begin(now time.Time) {
	st.Expired, st.Start, st.Updated, st.Shown = false, now, now, time.Time{}
	st.reset()
}

// reset clears all values.
func (st *stream) reset() {
	st.Count, st.Value, st.at = 0, 0, 0
	clear(st.Buckets)
	st.exemplars = st.exemplars[:0]
}

// zero returns a copy of a new stream that shows nothing yet. Its exemplars are kept for the
// value.
func (st *stream) zero() *stream {
	zero := *st
	zero.Buckets = make([]uint64, len(st.Buckets))
	zero.Count, zero.Value, zero.exemplars = 0, 0, nil
	return &zero
}

// addsUp reports whether a stream grows from zero.
func (st *stream) addsUp() bool {
	kind := series.All[st.series].Kind
	return kind == series.Counter || kind == series.Total || kind == series.Histogram
}

// show keeps the span of u as an exemplar: it replaces that of the same bucket,
// or at the limit another one.
func (st *stream) show(u *Update, value float64, bucket, limit int) {
	if u.Trace == [16]byte{} {
		return
	}
	e := exemplar{trace: u.Trace, span: u.Span, at: u.At, value: value, bucket: bucket}
	for i := range st.exemplars {
		if st.exemplars[i].bucket == bucket {
			st.exemplars[i] = e
			return
		}
	}
	if len(st.exemplars) < limit {
		st.exemplars = append(st.exemplars, e)
	} else {
		st.exemplars[int(st.Count%int64(limit))] = e
	}
}
