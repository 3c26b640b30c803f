package streams

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

const (
	// chunk is the number of streams whose points are built under one lock.
	// BenchmarkHold shows the time: a fraction of a millisecond.
	chunk = 16
	// maxPoints is the number of points of one Pass. A histogram's point has
	// some 600 bytes as OTLP, so this is less than the 4 MiB that gRPC servers
	// accept.
	maxPoints = 4096
)

// Flusher sends the streams of a Store. A store has one. It is not safe for
// concurrent use.
type Flusher struct {
	// Store holds the streams.
	Store *Store
	// InitialZero is how long a new counter or histogram is emitted as zero
	// before its value is emitted.
	InitialZero time.Duration
	// Prepare is called for the scope of each resource.
	Prepare func(pcommon.InstrumentationScope)
	// Pass is called with at most maxPoints points at a time. Flush returns its
	// errors.
	Pass func(pmetric.Metrics) error
	// Ahead, if it is not nil, is called before all that Pass is called with, and saves at
	// least that: a counter that went back over a restart would be added up again.
	Ahead func()

	// Writer is an attribute that every point gets. Without a name there is none.
	Writer Label

	// Last sends all streams with their values, including those that are sent
	// for the first time.
	Last bool
}

// Label is an attribute with text.
type Label struct{ Name, Value string }

// Flush sends all live streams with the time stamp now. A stream that has
// expired, or whose run is in evicted, is sent once more as a point without a
// value, and removed when that was accepted. Flush returns the number of
// removed streams, and all errors of Pass.
func (f *Flusher) Flush(now time.Time, evicted Evicted) (removed int64, err error) {
	expiration := f.Store.limits.Expiration
	is := ends{now, expiration, f.Store.silences.all(expiration, now), evicted, f.Store.runs.held()}
	var parts []*builder
	f.Store.each(func(st *stream) {
		if !st.Expired && is.over(st) {
			st.Expired = true
			st.reset()
		}
		if st.Shown.IsZero() {
			st.Shown = now
		}
		if n := len(parts); n == 0 || parts[n-1].points >= maxPoints {
			parts = append(parts, f.newBuilder(now))
		}
		b := parts[len(parts)-1]
		if !f.Last && st.addsUp() && now.Sub(st.Shown) < f.InitialZero {
			b.add(st.zero())
		} else {
			b.add(st)
			st.exemplars = st.exemplars[:0]
		}
		if st.Expired {
			b.expired = append(b.expired, st)
		}
	})
	if len(parts) > 0 && f.Ahead != nil {
		f.Ahead()
	}
	for _, b := range parts {
		if passed := f.Pass(b.metrics); passed != nil {
			err = errors.Join(err, passed)
		} else {
			removed += f.Store.removeExpired(b.expired)
		}
	}
	f.Store.runs.expire(expiration, now)
	return removed, err
}

// removeExpired removes streams, unless they have restarted.
func (s *Store) removeExpired(streams []*stream) (removed int64) {
	s.walk.Lock()
	defer s.walk.Unlock()
	for _, st := range streams {
		sh := s.shardOf(st.hash)
		sh.mu.Lock()
		if st.Expired {
			s.remove(sh, st)
			removed++
		}
		sh.mu.Unlock()
	}
	return removed
}

// ends says which streams have ended.
type ends struct {
	now        time.Time
	expiration time.Duration
	silences   map[Resource]Set
	evicted    Evicted
	// held are the runs whose streams do not expire.
	held map[RunKey]bool
}

// over reports whether a stream has ended: it has expired, or its program now sends it itself.
func (e *ends) over(st *stream) bool {
	held := false
	if st.Run.ID != "" && len(e.evicted)+len(e.held) > 0 {
		key := RunKey{st.Resource, st.Run.ID}
		if at, is := e.evicted[key]; is && !st.Updated.After(at) {
			return true
		}
		held = e.held[key]
	}
	old := e.expiration > 0 && !held && e.now.Sub(st.Updated) > e.expiration
	return old || series.All[st.series].Momentary && st.at != e.now.UnixNano() ||
		!st.OfAll && len(e.silences) > 0 && e.silences[st.Resource][st.series]
}
