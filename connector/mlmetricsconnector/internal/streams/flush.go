package streams

import (
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// piece is how many streams are copied under one lock, for which BenchmarkHold
	// shows the time: a fraction of a millisecond.
	piece = 256
	// maxPoints is how many points are passed on at once. A histogram's has
	// some 600 bytes as OTLP, so that it is less than the 4 MiB that gRPC
	// servers accept.
	maxPoints = 4096
)

// Flusher passes the streams of a Store on. It is not safe for concurrent use,
// and there is one for a store.
type Flusher struct {
	// Store holds the streams.
	Store *Store
	// Prepare is called for the scope of each resource.
	Prepare func(pcommon.InstrumentationScope)
	// Pass is called with at most maxPoints points at a time.
	Pass func(pmetric.Metrics) error

	// Last shows all streams with what they have counted, also those that are
	// passed on for the first time.
	Last bool

	copies  copies
	expired []place
	gone    []place
}

// place is where a stream stands in a store.
type place struct {
	shard, at int
}

// Flush passes all live streams on with the time stamp now. A stream that has
// expired, and one of a run in evicted, is passed on once more, as a point without
// a value, and removed when that was accepted. Flush returns the number of streams
// that it removed, and all errors of Pass.
func (f *Flusher) Flush(now time.Time, evicted Evicted) (removed int64, err error) {
	f.expired, f.gone = f.expired[:0], f.gone[:0]
	var errs []error
	b := newBuilder(now, f.Prepare)
	pass := func() {
		if b.points == 0 {
			return
		}
		if err := f.Pass(b.metrics); err != nil {
			errs = append(errs, err)
		} else {
			f.gone = append(f.gone, f.expired...)
		}
		f.expired = f.expired[:0]
		b = newBuilder(now, f.Prepare)
	}
	f.copies.expiration, f.copies.now = f.Store.limits.Expiration, now
	f.copies.initialZero, f.copies.evicted = f.Store.form.InitialZero, evicted
	if f.Last {
		f.copies.initialZero = 0
	}
	f.copies.held = f.Store.runs.held()
	f.copies.silences = f.Store.silences.all(f.Store.limits.Expiration, now)
	for i := range f.Store.shards {
		for from, more := 0, true; more; from += piece {
			more = f.copies.take(&f.Store.shards[i], from)
			for j := range f.copies.streams {
				snap := &f.copies.streams[j]
				b.add(snap)
				if snap.expired {
					f.expired = append(f.expired, place{i, from + j})
				}
				if b.points >= maxPoints {
					pass()
				}
			}
		}
	}
	pass()
	removed = f.Store.removeExpired(f.gone)
	f.Store.runs.expire(f.Store.limits.Expiration, now)
	return removed, errors.Join(errs...)
}

// removeExpired removes the streams at places, which are in order, unless
// they have begun anew. Going backwards leaves the places of the others as
// they are.
func (s *Store) removeExpired(places []place) (removed int64) {
	for end := len(places); end > 0; {
		from := max(0, end-piece)
		for from < end && places[from].shard != places[end-1].shard {
			from++
		}
		removed += s.removePiece(places[from:end])
		end = from
	}
	return removed
}

// removePiece does the same for places of one shard.
func (s *Store) removePiece(places []place) (removed int64) {
	sh := &s.shards[places[0].shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, p := range slices.Backward(places) {
		if at := p.at; sh.list[at].expired {
			s.remove(sh, at)
			removed++
		}
	}
	return removed
}

// copies is the memory for copies of a piece of a shard. Flush after flush uses
// the same.
type copies struct {
	now         time.Time
	expiration  time.Duration
	initialZero time.Duration
	silences    map[Resource]*Set
	evicted     Evicted
	// held are the runs whose streams do not expire.
	held map[RunKey]bool

	streams   []stream
	buckets   []uint64
	exemplars []exemplar
}

// take copies the streams of a shard from one place on, ends those that have
// expired and those that a program now sends itself, and reports whether there
// are more. Only this is done under the lock.
func (c *copies) take(sh *shard, from int) (more bool) {
	c.streams, c.buckets, c.exemplars = c.streams[:0], c.buckets[:0], c.exemplars[:0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	to := min(from+piece, len(sh.list))
	for _, st := range sh.list[min(from, to):to] {
		if !st.expired && c.over(st) {
			st.expired = true
			st.reset()
		}
		if st.shown.IsZero() {
			st.shown = c.now
		}
		copied := *st
		copied.exponential = st.exponential.clone()
		if c.initialZero > 0 && st.addsUp() && c.now.Sub(st.shown) < c.initialZero {
			// The spans of the exemplars are kept for the value.
			c.streams = append(c.streams, c.zero(copied))
			continue
		}
		// A slice that grows leaves the ones before where they are, and what
		// they point to stays.
		first := len(c.buckets)
		c.buckets = append(c.buckets, st.buckets...)
		copied.buckets = c.buckets[first:]
		first = len(c.exemplars)
		c.exemplars = append(c.exemplars, st.exemplars...)
		copied.exemplars = c.exemplars[first:]
		st.exemplars = st.exemplars[:0]
		c.streams = append(c.streams, copied)
	}
	return to < len(sh.list)
}

// zero returns a copy of a stream that has counted nothing.
func (c *copies) zero(copied stream) stream {
	copied.count, copied.value, copied.exemplars = 0, 0, nil
	first := len(c.buckets)
	c.buckets = append(c.buckets, make([]uint64, len(copied.buckets))...)
	copied.buckets = c.buckets[first:]
	if copied.exponential != nil {
		copied.exponential = new(exponential)
	}
	return copied
}

// over reports whether a stream has come to its end.
func (c *copies) over(st *stream) bool {
	held := false
	if st.run.ID != "" && len(c.evicted)+len(c.held) > 0 {
		key := RunKey{st.resource, st.run.ID}
		if at, is := c.evicted[key]; is && !st.updated.After(at) {
			return true
		}
		held = c.held[key]
	}
	if c.expiration > 0 && !held && c.now.Sub(st.updated) > c.expiration {
		return true
	}
	if len(c.silences) == 0 || st.ofAll {
		return false
	}
	silent := c.silences[st.resource]
	return silent != nil && silent[st.series]
}
