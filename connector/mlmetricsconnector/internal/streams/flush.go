package streams

import (
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

const (
	// chunk is the number of streams that are copied under one lock.
	// BenchmarkHold shows the time: a fraction of a millisecond.
	chunk = 256
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

	copies copies
}

// Label is an attribute with text.
type Label struct{ Name, Value string }

// position locates a stream in a store.
type position struct {
	shard, at int
}

// Flush sends all live streams with the time stamp now. A stream that has
// expired, or whose run is in evicted, is sent once more as a point without a
// value, and removed when that was accepted. Flush returns the number of
// removed streams, and all errors of Pass.
func (f *Flusher) Flush(now time.Time, evicted Evicted) (removed int64, err error) {
	var errs []error
	var gone []position
	builders := []*builder{f.newBuilder(now)}
	f.copies.expiration, f.copies.now, f.copies.evicted, f.copies.initialZero = f.Store.limits.Expiration, now, evicted, f.InitialZero
	if f.Last {
		f.copies.initialZero = 0
	}
	f.copies.held, f.copies.silences = f.Store.runs.held(), f.Store.silences.all(f.Store.limits.Expiration, now)
	for i := range f.Store.shards {
		for from, more := 0, true; more; from += chunk {
			more = f.copies.take(&f.Store.shards[i], from)
			for j := range f.copies.streams {
				b := builders[len(builders)-1]
				if b.points >= maxPoints {
					b = f.newBuilder(now)
					builders = append(builders, b)
				}
				snap := &f.copies.streams[j]
				b.add(snap)
				if snap.Expired {
					b.expired = append(b.expired, position{i, from + j})
				}
			}
		}
	}
	if builders[0].points == 0 {
		builders = nil
	} else if f.Ahead != nil {
		f.Ahead()
	}
	for _, b := range builders {
		if err := f.Pass(b.metrics); err != nil {
			errs = append(errs, err)
		} else {
			gone = append(gone, b.expired...)
		}
	}
	removed = f.Store.removeExpired(gone)
	f.Store.runs.expire(f.Store.limits.Expiration, now)
	return removed, errors.Join(errs...)
}

// removeExpired removes the streams at positions, which are in order, unless
// they have restarted. It goes backwards, so that the other positions stay
// valid.
func (s *Store) removeExpired(positions []position) (removed int64) {
	s.walk.Lock()
	defer s.walk.Unlock()
	for _, p := range slices.Backward(positions) {
		sh := &s.shards[p.shard]
		sh.mu.Lock()
		if sh.list[p.at].Expired {
			s.remove(sh, p.at)
			removed++
		}
		sh.mu.Unlock()
	}
	return removed
}

// copies is memory for copies of a chunk of a shard, reused by each flush.
type copies struct {
	now         time.Time
	expiration  time.Duration
	initialZero time.Duration
	silences    map[Resource]Set
	evicted     Evicted
	// held are the runs whose streams do not expire.
	held map[RunKey]bool

	streams   []stream
	buckets   []uint64
	exemplars []exemplar
}

// take copies the streams of a shard from an index on, ends those that have
// expired and those that a program now sends itself, and reports whether there
// are more. Only this is done under the lock.
func (c *copies) take(sh *shard, from int) (more bool) {
	c.streams, c.buckets, c.exemplars = c.streams[:0], c.buckets[:0], c.exemplars[:0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	to := min(from+chunk, len(sh.list))
	for _, st := range sh.list[min(from, to):to] {
		if !st.Expired && c.over(st) {
			st.Expired = true
			st.reset()
		}
		if st.Shown.IsZero() {
			st.Shown = c.now
		}
		copied := *st
		// A growing slice does not move what earlier slices point to.
		first := len(c.buckets)
		c.buckets = append(c.buckets, st.Buckets...)
		copied.Buckets = c.buckets[first:]
		if c.initialZero > 0 && st.addsUp() && c.now.Sub(st.Shown) < c.initialZero {
			// The exemplars are kept for the value.
			copied.Count, copied.Value, copied.exemplars = 0, 0, nil
			clear(copied.Buckets)
		} else {
			first = len(c.exemplars)
			c.exemplars = append(c.exemplars, st.exemplars...)
			copied.exemplars = c.exemplars[first:]
			st.exemplars = st.exemplars[:0]
		}
		c.streams = append(c.streams, copied)
	}
	return to < len(sh.list)
}

// over reports whether a stream has ended.
func (c *copies) over(st *stream) bool {
	held := false
	if st.Run.ID != "" && len(c.evicted)+len(c.held) > 0 {
		key := RunKey{st.Resource, st.Run.ID}
		if at, is := c.evicted[key]; is && !st.Updated.After(at) {
			return true
		}
		held = c.held[key]
	}
	if series.All[st.series].Momentary && st.at != c.now.UnixNano() {
		return true
	}
	if c.expiration > 0 && !held && c.now.Sub(st.Updated) > c.expiration {
		return true
	}
	return !st.OfAll && len(c.silences) > 0 && c.silences[st.Resource][st.series]
}
