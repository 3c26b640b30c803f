package streams

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// maxExemplars is the largest number of exemplars of a histogram between two
// flushes, each in another bucket. A counter has one.
const maxExemplars = 4

// stream is the state of one stream. The kind of its series determines the
// fields in use.
type stream struct {
	identity
	labels []string
	series series.ID
	// ofAll reports whether this is the overflow stream of its series.
	ofAll bool
	// expired reports whether the stream has expired and its end has not been
	// sent yet.
	expired bool

	hash uint64

	start, updated time.Time
	// shown is the time of its first emission.
	shown time.Time
	count int64
	value float64 // of a gauge; the sum of a histogram
	at    int64
	// bounds and buckets are those of a histogram, if it has any.
	bounds    []float64
	buckets   []uint64
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

// newStream clones the strings: a label may be the beginning of a long text,
// which a stream must not keep in memory.
func newStream(u *Update, labels []string, now time.Time) *stream {
	st := &stream{series: u.Series, start: now, labels: slices.Clone(labels)}
	for i, label := range labels {
		st.labels[i] = strings.Clone(label)
	}
	st.resource = u.Source.Resource.Clone()
	if u.Source.admitted {
		st.run = u.Source.Run.Clone()
	} else {
		st.overflow = true
	}
	return st
}

// makeBuckets creates the buckets of a histogram.
func (st *stream) makeBuckets() {
	s := &series.All[st.series]
	if s.Kind != series.Histogram {
		return
	}
	first := ""
	if len(st.labels) > 0 {
		first = st.labels[0]
	}
	st.bounds = s.Bounds(first)
	st.buckets = make([]uint64, len(st.bounds)+1)
}

func (st *stream) apply(u *Update, now time.Time) {
	if st.expired {
		st.begin(now)
	}
	if now.After(st.updated) {
		st.updated = now
	}
	switch series.All[st.series].Kind {
	case series.Counter:
		if sum := st.count + u.Count; sum >= st.count {
			st.count = sum // else it would wrap round: it stays at what it is
		}
		st.show(u, float64(u.Count), 0, 1)
	case series.Balance:
		if sum := st.count + u.Count; sum >= st.count || u.Count < 0 {
			st.count = max(0, sum)
		}
	case series.Total:
		st.value += u.Value
	case series.Gauge, series.State:
		if u.At >= st.at || series.All[st.series].Momentary {
			st.value, st.at = u.Value, u.At
		}
	case series.Histogram:
		st.count++
		st.value += u.Value
		bucket := sort.SearchFloat64s(st.bounds, u.Value)
		st.buckets[bucket]++
		st.show(u, u.Value, bucket, maxExemplars)
	}
}

// begin restarts an expired stream.
func (st *stream) begin(now time.Time) {
	st.expired, st.start, st.updated, st.shown = false, now, now, time.Time{}
	st.reset()
}

// reset clears all values.
func (st *stream) reset() {
	st.count, st.value, st.at = 0, 0, 0
	clear(st.buckets)
	st.exemplars = st.exemplars[:0]
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
		st.exemplars[int(st.count%int64(limit))] = e
	}
}
