// Package streams keeps the cumulative state of the connector's series, one
// stream per set of labels, within hard limits, and turns it into metrics.
package streams

import (
	"hash/maphash"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// shardCount spreads the streams over locks, so that neither two senders nor
// a sender and a flush wait for each other for long: a lock is held for one
// update, or for a copy of one shard.
const shardCount = 64

// Resource identifies the program that a stream belongs to.
type Resource struct {
	// Namespace is service.namespace; empty where there is none.
	Namespace string
	// Service is service.name.
	Service string
}

// Run holds the values of series.RunLabels; an empty one is left out.
type Run struct {
	ID, Job, Rank, Host string
}

// Key identifies one stream.
type Key struct {
	Resource Resource
	Run      Run
	// Labels are the values of the series' own labels, in their order; an
	// empty one is left out.
	Labels [series.MaxLabels]string
	Series series.ID

	overflow bool
}

// Update is one change of one stream.
type Update struct {
	Key Key
	// Count is what a counter grows by. It must not be negative.
	Count int64
	// Value is a gauge's or state's value, what a histogram observes, or what a
	// total grows by, which must not be negative.
	Value float64
	// At orders the values of a gauge, in nanoseconds since 1970: an older
	// one never replaces a newer one.
	At int64
}

// Limits bound a Store.
type Limits struct {
	// Series is the largest number of streams, overflow streams apart.
	Series int
	// Runs is the largest number of runs with streams of their own.
	Runs int
	// Expiration is how long a stream and a run live without an update; 0
	// means forever.
	Expiration time.Duration
}

// Overflowed counts the updates that a limit turned away from their stream.
type Overflowed struct {
	Series, Runs int64
}

// Add adds what another call has counted.
func (o *Overflowed) Add(other Overflowed) {
	o.Series += other.Series
	o.Runs += other.Runs
}

// Store holds the streams. It is safe for concurrent use.
type Store struct {
	limits Limits
	seed   maphash.Seed
	// regular counts the streams that Limits.Series bounds.
	regular atomic.Int64
	// all counts the streams, overflow streams included.
	all    atomic.Int64
	runs   runs
	shards [shardCount]shard
}

type shard struct {
	mu      sync.Mutex
	streams map[Key]*stream
}

// stream is the state of one stream; which fields are used depends on the
// series' kind.
type stream struct {
	start, updated time.Time
	count          int64
	value          float64 // of a gauge; the sum of a histogram
	at             int64
	buckets        []uint64
}

// NewStore returns an empty store.
func NewStore(limits Limits) *Store {
	s := &Store{limits: limits, seed: maphash.MakeSeed()}
	s.runs.seen = make(map[runKey]time.Time)
	for i := range s.shards {
		s.shards[i].streams = make(map[Key]*stream)
	}
	return s
}

// Streams returns the number of live streams, overflow streams included.
func (s *Store) Streams() int64 { return s.all.Load() }

// Runs returns the number of live runs.
func (s *Store) Runs() int64 { return s.runs.len() }

// Apply adds the updates, all of which arrived at now.
func (s *Store) Apply(updates []Update, now time.Time) Overflowed {
	var over Overflowed
	for i := range updates {
		u := &updates[i]
		key := u.Key
		if key.Run.ID != "" && !s.runs.admit(runKey{key.Resource, key.Run.ID}, s.limits.Runs, now) {
			over.Runs++
			if newest(key.Series) {
				continue // the newest value of many runs means nothing
			}
			key.Run, key.overflow = Run{}, true
		}
		if s.add(key, u, now) {
			continue
		}
		over.Series++
		if !newest(key.Series) {
			s.add(Key{Series: key.Series, overflow: true}, u, now)
		}
	}
	return over
}

// newest reports whether a series shows a value and adds nothing up.
func newest(id series.ID) bool {
	kind := series.All[id].Kind
	return kind == series.Gauge || kind == series.State
}

// add applies u to the stream of key. It returns false where that stream
// would be one too many.
func (s *Store) add(key Key, u *Update, now time.Time) bool {
	sh := &s.shards[maphash.Comparable(s.seed, key)%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st, ok := sh.streams[key]
	if !ok {
		if key.bounded() && s.regular.Add(1) > int64(s.limits.Series) {
			s.regular.Add(-1)
			return false
		}
		s.all.Add(1)
		st = &stream{start: now}
		if bounds := series.All[key.Series].Buckets; bounds != nil {
			st.buckets = make([]uint64, len(bounds)+1)
		}
		sh.streams[key.clone()] = st
	}
	st.apply(u, key.Series, now)
	return true
}

// bounded is false for the one stream per series that takes what the limit on
// series turns away.
func (k *Key) bounded() bool {
	return *k != Key{Series: k.Series, overflow: true}
}

// clone copies the key's strings. A label may be the beginning of a much
// longer text, which a stream must not keep alive.
func (k Key) clone() Key {
	k.Resource, k.Run = k.Resource.Clone(), k.Run.Clone()
	for i, label := range k.Labels {
		k.Labels[i] = strings.Clone(label)
	}
	return k
}

// Clone returns a copy that keeps nothing else alive.
func (r Resource) Clone() Resource {
	return Resource{Namespace: strings.Clone(r.Namespace), Service: strings.Clone(r.Service)}
}

// Clone returns a copy that keeps nothing else alive.
func (r Run) Clone() Run {
	return Run{
		ID: strings.Clone(r.ID), Job: strings.Clone(r.Job),
		Rank: strings.Clone(r.Rank), Host: strings.Clone(r.Host),
	}
}

func (st *stream) apply(u *Update, id series.ID, now time.Time) {
	if now.After(st.updated) {
		st.updated = now
	}
	switch s := &series.All[id]; s.Kind {
	case series.Counter:
		if sum := st.count + u.Count; sum >= st.count {
			st.count = sum // else it would wrap round: it stays at what it is
		}
	case series.Total:
		st.value += u.Value
	case series.Gauge, series.State:
		if u.At >= st.at {
			st.value, st.at = u.Value, u.At
		}
	case series.Histogram:
		st.count++
		st.value += u.Value
		st.buckets[sort.SearchFloat64s(s.Buckets, u.Value)]++
	}
}

// snapshot is a stream's state at the time of a flush.
type snapshot struct {
	key    Key
	stream stream
}

// collect removes what has expired from a shard and appends a copy of the
// rest to into. Only the copying is done under the lock.
func (s *Store) collect(sh *shard, into []snapshot, now time.Time) (_ []snapshot, expired int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	into = slices.Grow(into, len(sh.streams))
	for key, st := range sh.streams {
		if s.limits.Expiration > 0 && now.Sub(st.updated) > s.limits.Expiration {
			delete(sh.streams, key)
			s.all.Add(-1)
			if key.bounded() {
				s.regular.Add(-1)
			}
			expired++
			continue
		}
		copied := *st
		copied.buckets = slices.Clone(st.buckets)
		into = append(into, snapshot{key: key, stream: copied})
	}
	return into, expired
}
