// Package streams keeps the cumulative state of the connector's series, one
// stream per set of labels, within hard limits, and turns it into metrics.
package streams

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// shardCount spreads the streams over locks, so that neither two senders nor
// a sender and a flush wait for each other for long: a lock is held for one
// update, or for a copy of piece streams.
const shardCount = 64

// Update is one change of one stream.
type Update struct {
	// Source is the program, and where there is one the process of a run,
	// that the stream belongs to.
	Source *Source
	// Labels are the values of the series' own labels, in their order; an
	// empty one is left out.
	Labels [series.MaxLabels]string
	// Count is what a counter grows by, which must not be negative, or what a
	// balance changes by.
	Count int64
	// Value is a gauge's or state's value, what a histogram observes, or what a
	// total grows by, which must not be negative.
	Value float64
	// At orders the values of a gauge, in nanoseconds since 1970: an older
	// one never replaces a newer one. It is also the time of the exemplar.
	At int64
	// Trace and Span identify the span that the update came from. It may
	// become an exemplar of a counter or histogram, unless Trace is zeros.
	Trace [16]byte
	Span  [8]byte
	// Series is the metric.
	Series series.ID
}

// Limits bound a Store.
type Limits struct {
	// Series is the largest number of series that Prometheus shows for the
	// streams, overflow streams of this limit apart: there is at most one of each
	// metric.
	Series int
	// Runs is the largest number of runs with streams of their own.
	Runs int
	// Expiration is how long a stream and a run live without an update; 0
	// means forever.
	Expiration time.Duration
}

// Form is how a Store passes its streams on.
type Form struct {
	// InitialZero is how long a counter or histogram is passed on as zero, from
	// the first time on, before it is passed on with what it has counted.
	InitialZero time.Duration
	// Exponential gives histograms exponential buckets instead of those of the
	// table.
	Exponential bool
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

// Store holds the streams. Apply, Streams and Runs are safe for concurrent
// use, also with one Flush.
type Store struct {
	limits Limits
	form   Form
	seed   maphash.Seed
	// regular counts the series that Limits.Series bounds.
	regular atomic.Int64
	// all counts the streams, overflow streams and expired ones included.
	all    atomic.Int64
	runs   runs
	shards [shardCount]shard
	// silences is nil where nobody listens to what programs send themselves.
	silences *Silences
}

type shard struct {
	mu sync.Mutex
	// byHash has the streams of each hash, of which there is hardly ever more
	// than one.
	byHash map[uint64]*stream
	// list has all streams in an order that only a flush changes, so that it
	// can go through them in pieces.
	list []*stream
}

// NewStore returns an empty store.
func NewStore(limits Limits, form Form) *Store {
	s := &Store{limits: limits, form: form, seed: maphash.MakeSeed(), runs: newRuns()}
	for i := range s.shards {
		s.shards[i].byHash = make(map[uint64]*stream)
	}
	return s
}

// Heed makes the store leave alone what programs send themselves. It must be
// called before any other method is.
func (s *Store) Heed(silences *Silences) { s.silences = silences }

// Streams returns the number of live streams, overflow streams included, and
// of those whose end has not been passed on yet.
func (s *Store) Streams() int64 { return s.all.Load() }

// Series returns the number of series that Prometheus shows for the live streams,
// overflow streams of Limits.Series apart.
func (s *Store) Series() int64 { return s.regular.Load() }

// Runs returns the number of live runs.
func (s *Store) Runs() int64 { return s.runs.len() }

// Apply adds the updates, all of which arrived at now.
func (s *Store) Apply(updates []Update, now time.Time) Overflowed {
	var over Overflowed
	for i := range updates {
		u := &updates[i]
		src := u.Source
		s.settle(src, now)
		if src.silent != nil && src.silent[u.Series] {
			continue
		}
		if !src.admitted {
			over.Runs++
			if newest(u.Series) {
				continue // the newest value of many runs means nothing
			}
		}
		if s.add(u, src.hash, now) {
			continue
		}
		over.Series++
		if !newest(u.Series) {
			s.addOverflow(u, now)
		}
	}
	return over
}

// settle finds out, once for all of a request's updates of a source, whether
// its run may have streams of its own, and keeps the run alive if so.
func (s *Store) settle(src *Source, now time.Time) {
	if src.hash != 0 && src.settled.Equal(now) {
		return
	}
	src.settled, src.admitted = now, src.Run.ID != mlattr.Other
	src.silent = s.silences.of(src.Resource)
	if src.Run.ID != "" && src.admitted {
		src.admitted = s.runs.admit(RunKey{src.Resource, src.Run.ID}, s.limits.Runs, now)
	}
	if src.admitted {
		src.hash = maphash.Comparable(s.seed, identity{src.Resource, src.Run, false})
	} else {
		src.hash = maphash.Comparable(s.seed, identity{src.Resource, Run{}, true})
	}
	src.hash |= 1
}

// newest reports whether a series shows a value and adds nothing up.
func newest(id series.ID) bool {
	kind := series.All[id].Kind
	return kind == series.Gauge || kind == series.State
}

// add applies u to its stream. It returns false where that stream would be
// one too many.
func (s *Store) add(u *Update, of uint64, now time.Time) bool {
	labels := u.Labels[:len(series.All[u.Series].Labels)]
	hash := (of + uint64(u.Series)) * 0x9e3779b97f4a7c15
	for i := range labels {
		if labels[i] != "" {
			hash ^= maphash.String(s.seed, labels[i])
		}
		hash = bits.RotateLeft64(hash, 23) * 0x9e3779b97f4a7c15
	}
	sh := &s.shards[hash>>(64-6)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st := sh.byHash[hash]
	for st != nil && !st.isOf(u, labels) {
		st = st.next
	}
	if st == nil {
		shown := s.shown(u.Series, labels)
		if s.regular.Add(shown) > int64(s.limits.Series) {
			s.regular.Add(-shown)
			return false
		}
		st = newStream(u, labels, now)
		st.makeBuckets(s.form.Exponential)
		s.insert(sh, st, hash)
	}
	st.apply(u, now)
	return true
}

// addOverflow applies u to the one stream of its series that takes what the
// limit on series turns away.
func (s *Store) addOverflow(u *Update, now time.Time) {
	// Its hash is one of the places below the number of series, which no
	// other stream of this shard is found at by more than chance, and then it
	// is told apart by what it is.
	hash := uint64(u.Series)
	sh := &s.shards[0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st := sh.byHash[hash]
	for st != nil && !st.ofAll {
		st = st.next
	}
	if st == nil {
		st = &stream{series: u.Series, identity: identity{overflow: true}, ofAll: true, start: now}
		st.makeBuckets(s.form.Exponential)
		s.insert(sh, st, hash)
	}
	st.apply(u, now)
}

func (s *Store) insert(sh *shard, st *stream, hash uint64) {
	s.all.Add(1)
	st.hash, st.next = hash, sh.byHash[hash]
	sh.byHash[hash] = st
	sh.list = append(sh.list, st)
}

// remove takes the stream at a place of the list out of a shard.
func (s *Store) remove(sh *shard, place int) {
	st := sh.list[place]
	last := len(sh.list) - 1
	sh.list[place], sh.list[last] = sh.list[last], nil
	sh.list = sh.list[:last]
	if first := sh.byHash[st.hash]; first != st {
		for first.next != st {
			first = first.next
		}
		first.next = st.next
	} else if st.next != nil {
		sh.byHash[st.hash] = st.next
	} else {
		delete(sh.byHash, st.hash)
	}
	s.all.Add(-1)
	if !st.ofAll {
		s.regular.Add(-s.shown(st.series, st.labels))
	}
}

// shown is how many series Prometheus shows for a stream.
func (s *Store) shown(id series.ID, labels []string) int64 {
	first := ""
	if len(labels) > 0 {
		first = labels[0]
	}
	return int64(series.All[id].Shown(first, s.form.Exponential))
}
