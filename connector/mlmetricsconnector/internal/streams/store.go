// Package streams keeps the cumulative state of the connector's series, one
// stream for each set of labels, within hard limits, and converts it to
// metrics.
package streams

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// shardCount is the number of locks over which the streams are spread, so that
// clients and flushes do not wait for each other for long: a lock is held for the
// updates of one source in a request, or for chunk streams of a flush.
const (
	shardBits  = 6
	shardCount = 1 << shardBits
)

// Update is a change of one stream.
type Update struct {
	// Source is the program of the stream and, if there is one, the rank of a
	// run.
	Source *Source
	// Labels are the values of the series' own labels, in order; empty ones are
	// omitted.
	Labels [series.MaxLabels]string
	// Count is the increase of a counter, which must not be negative, or the
	// change of a balance.
	Count int64
	// Value is the value of a gauge or state, the observation of a histogram,
	// or the increase of a total, which must not be negative.
	Value float64
	// At orders the values of a gauge, in nanoseconds since 1970: an older
	// value never replaces a newer one. It is also the time of the exemplar.
	At int64
	// Trace and Span identify the span of the update. It may become an exemplar
	// of a counter or histogram, unless Trace is zero.
	Trace [16]byte
	Span  [8]byte
	// Series is the metric.
	Series series.ID
}

// Limits are the limits of a Store.
type Limits struct {
	// Series is the largest number of series that Prometheus shows for the
	// streams, not counting overflow streams of this limit: at most one for
	// each metric.
	Series int
	// Runs is the largest number of runs with streams of their own.
	Runs int
	// Expiration is how long a stream and a run live without an update; 0 means
	// forever.
	Expiration time.Duration
}

// Overflowed counts updates beyond a limit.
type Overflowed struct {
	Series, Runs atomic.Int64
}

// Store holds the streams. Apply, Streams, Series and Runs are safe for
// concurrent use, also with one Flush.
type Store struct {
	// Overflowed are the updates that were beyond a limit.
	Overflowed Overflowed

	limits Limits
	seed   maphash.Seed
	// regular is the number of series that Limits.Series limits.
	regular atomic.Int64
	// all is the number of streams, including overflow streams and expired
	// ones.
	all    atomic.Int64
	runs   runs
	shards [shardCount]shard
	// silences are empty without Exclude.
	silences *Silences
	// walk is held while all streams are copied, so that none moves.
	walk sync.Mutex
}

type shard struct {
	mu sync.Mutex
	// byHash has the streams by a hash of their identity, whose seed no client knows.
	// Two of a million streams of one source have the same with a probability of 1 to 570,000.
	byHash map[uint64]*stream
	// list has all streams in an order that only a flush changes, so that it
	// can walk them in chunks.
	list []*stream
}

// NewStore returns an empty store.
func NewStore(limits Limits) *Store {
	s := &Store{limits: limits, seed: maphash.MakeSeed(), silences: new(Silences)}
	s.runs.seen, s.runs.evicted, s.runs.shares = make(map[RunKey]*liveRun), make(Evicted), share.NewHistory()
	for i := range s.shards {
		s.shards[i].byHash = make(map[uint64]*stream)
	}
	return s
}

// Exclude makes the store ignore series that programs send themselves. It must
// be called before any other method.
func (s *Store) Exclude(silences *Silences) { s.silences = silences }

// Streams returns the number of live streams, including overflow streams and
// those whose end has not been sent yet.
func (s *Store) Streams() int64 { return s.all.Load() }

// Series returns the number of series that Prometheus shows for the live
// streams, not counting overflow streams of Limits.Series.
func (s *Store) Series() int64 { return s.regular.Load() }

// Use returns which part of the limits of series and of runs is used. Runs that give way to
// a new one do not count.
func (s *Store) Use(now time.Time) (series, runs float64) {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	for _, run := range s.runs.seen {
		if run.judged(now) > Silent {
			runs++
		}
	}
	return float64(s.Series()) / float64(s.limits.Series), runs / float64(max(s.limits.Runs, 1))
}

// Runs returns the number of live runs.
func (s *Store) Runs() int64 {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	return int64(len(s.runs.seen))
}

// each calls see for each stream, under the lock of a shard, which is held for at most chunk
// streams. Streams that are added meanwhile may be left out.
func (s *Store) each(see func(*stream)) {
	for i := range s.shards {
		sh := &s.shards[i]
		for from, more := 0, true; more; from += chunk {
			more = sh.each(from, see)
		}
	}
}

// each does so for those from an index on, and reports whether there are more.
func (sh *shard) each(from int, see func(*stream)) (more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	to := min(from+chunk, len(sh.list))
	for _, st := range sh.list[min(from, to):to] {
		see(st)
	}
	return to < len(sh.list)
}

// Apply adds updates that arrived at now.
func (s *Store) Apply(updates []Update, now time.Time) {
	var held *shard
	hold := func(next *shard) {
		if held != nil && next != held {
			held.mu.Unlock()
		}
		if next != nil && next != held {
			next.mu.Lock()
		}
		held = next
	}
	defer func() { hold(nil) }()
	for i := range updates {
		u := &updates[i]
		src := u.Source
		if !src.isSettled(now) {
			hold(nil)
			s.settle(src, now)
		}
		if src.silent[u.Series] {
			continue
		}
		if !src.admitted {
			s.Overflowed.Runs.Add(1)
			if newest(u.Series) {
				continue // the newest value of many runs means nothing
			}
		}
		labels := u.Labels[:len(series.All[u.Series].Labels)]
		hash := s.hashOf(src.hash, u.Series, labels)
		if hold(s.shardOf(hash)); s.add(held, u, hash, labels, now) {
			continue
		}
		s.Overflowed.Series.Add(1)
		if hash = uint64(u.Series); !newest(u.Series) { // the hashes of others are random
			hold(s.shardOf(hash))
			s.add(held, u, hash, nil, now)
		}
	}
}

// isSettled reports whether settle was called for the request that arrived at now.
func (src *Source) isSettled(now time.Time) bool { return src.hash != 0 && src.settled.Equal(now) }

// settle determines, once for all updates of a source in a request, whether its
// run may have streams of its own, and if so keeps the run alive.
func (s *Store) settle(src *Source, now time.Time) {
	src.settled, src.admitted = now, src.Run.ID != mlattr.Other
	src.silent = s.silences.of(src.Resource)
	if src.Run.ID != "" && src.admitted {
		src.admitted = s.runs.admit(RunKey{src.Resource, src.Run.ID}, src.Origin, s.limits.Runs, now)
	}
	src.hash = s.hashOfSource(src.identity())
}

// hashOfSource returns a hash that is not 0.
func (s *Store) hashOfSource(of Identity) uint64 { return maphash.Comparable(s.seed, of) | 1 }

// hashOf returns the hash of a stream of a source: all of one are in one shard.
func (s *Store) hashOf(source uint64, id series.ID, labels []string) uint64 {
	hash := (source + uint64(id)) * 0x9e3779b97f4a7c15
	for i := range labels {
		if labels[i] != "" {
			hash ^= maphash.String(s.seed, labels[i])
		}
		hash = bits.RotateLeft64(hash, 23) * 0x9e3779b97f4a7c15
	}
	return hash>>shardBits | source&^(1<<(64-shardBits)-1)
}

// newest reports whether a series holds the newest value instead of a sum.
func newest(id series.ID) bool {
	kind := series.All[id].Kind
	return kind == series.Gauge || kind == series.State
}

// add applies u to the stream of a hash in its shard, which is locked: one with labels, or for
// nil the overflow stream of its series. It returns false if a new stream would exceed the limit.
func (s *Store) add(sh *shard, u *Update, hash uint64, labels []string, now time.Time) bool {
	st := sh.byHash[hash]
	if st == nil {
		if labels != nil && !s.room(u.Series, labels) {
			return false
		}
		st = newStream(u, labels, now)
		s.insert(sh, st, hash)
	}
	st.apply(u, now)
	return true
}

// room takes room for the series of a stream, and reports whether there was any.
func (s *Store) room(id series.ID, labels []string) bool {
	if s.regular.Add(shown(id, labels)) > int64(s.limits.Series) {
		s.regular.Add(-shown(id, labels))
		return false
	}
	return true
}

// shardOf returns the shard of a hash.
func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash>>(64-shardBits)] }

func (s *Store) insert(sh *shard, st *stream, hash uint64) {
	s.all.Add(1)
	st.hash, st.index = hash, len(sh.list)
	sh.byHash[hash] = st
	sh.list = append(sh.list, st)
}

// remove removes a stream. The last of its shard's list takes its place.
func (s *Store) remove(sh *shard, st *stream) {
	last := len(sh.list) - 1
	moved := sh.list[last]
	sh.list[st.index], moved.index = moved, st.index
	sh.list[last] = nil
	sh.list = sh.list[:last]
	delete(sh.byHash, st.hash)
	s.all.Add(-1)
	if !st.OfAll {
		s.regular.Add(-shown(st.series, st.Labels))
	}
}

// shown returns the number of series that Prometheus shows for a stream.
func shown(id series.ID, labels []string) int64 { return int64(series.All[id].Shown(firstOf(labels))) }

// firstOf returns the first label of a stream, "" if it has none.
func firstOf(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return labels[0]
}

// Keep returns the streams that add up. Only their copies are made under a lock.
func (s *Store) Keep() []Kept {
	s.walk.Lock()
	defer s.walk.Unlock()
	all := make([]Kept, 0, s.Streams())
	s.each(func(st *stream) {
		if !newest(st.series) {
			all = append(all, st.Kept)
			last := &all[len(all)-1]
			last.Metric, last.Buckets = series.All[st.series].Name, slices.Clone(st.Buckets)
		}
	})
	return all
}

// Restore adds what Keep returned, within the limits. Series that this version has not, or
// not so, are left out. It must not be called after Apply.
func (s *Store) Restore(all []Kept) {
	byName := make(map[string]series.ID)
	for id := range series.Count {
		byName[series.All[id].Name] = id
	}
	for i := range all {
		st := &stream{Kept: all[i]}
		id, known := byName[st.Metric]
		if !known || newest(id) || !st.OfAll && len(st.Labels) != len(series.All[id].Labels) {
			continue
		}
		st.series = id
		st.makeBuckets()
		if len(st.Buckets) != len(all[i].Buckets) {
			continue
		}
		copy(st.Buckets, all[i].Buckets)
		if st.OfAll {
			s.insert(s.shardOf(uint64(id)), st, uint64(id))
			continue
		}
		if st.Run.ID != "" && !st.Expired && !s.runs.admit(RunKey{st.Resource, st.Run.ID}, share.Origin{}, s.limits.Runs, st.Updated) {
			continue
		}
		if !s.room(id, st.Labels) {
			continue
		}
		hash := s.hashOf(s.hashOfSource(st.Identity), id, st.Labels)
		s.insert(s.shardOf(hash), st, hash)
	}
}
