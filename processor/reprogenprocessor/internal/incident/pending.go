package incident

import (
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/lru"
)

// pendingFor is how long a value is kept whose failure does not come.
const pendingFor = 30 * time.Minute

// Pending keeps values until the failure that they belong to comes, for pendingFor
// and up to a number of entries and bytes. The least recently added values of an
// origin with more than its share make room. It is safe for concurrent use.
type Pending[K comparable, V any] struct {
	mu      sync.Mutex
	kept    *lru.Cache[K, pendingValue[V]]
	bytes   int64
	limit   int64
	entries int64
	path    func(share.Origin) share.Path
}

type pendingValue[V any] struct {
	value  V
	origin share.Origin
	weight int64
	at     time.Time
}

// NewPending returns an empty Pending.
func NewPending[K comparable, V any](entries int, bytes int64, path func(share.Origin) share.Path) *Pending[K, V] {
	s := &Pending[K, V]{limit: bytes, entries: int64(entries), path: path}
	s.kept = lru.New(entries, func(_ K, v pendingValue[V]) { s.bytes -= v.weight })
	return s
}

// Put keeps a value of an origin that takes weight bytes, if there is room for
// it.
func (s *Pending[K, V]) Put(key K, value V, weight int64, origin share.Origin, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(key)
	added := pendingValue[V]{value, origin, weight, now}
	if int64(s.kept.Len()) >= s.entries && !s.makeRoom(added, s.entries, func(pendingValue[V]) int64 { return 1 }) ||
		s.bytes+weight > s.limit && !s.makeRoom(added, s.limit, func(v pendingValue[V]) int64 { return v.weight }) {
		return
	}
	s.bytes += weight
	s.kept.Add(key, added)
}

// makeRoom removes what passes the shares of a limit, and reports whether what is
// to be added does not.
func (s *Pending[K, V]) makeRoom(added pendingValue[V], limit int64, weigh func(pendingValue[V]) int64) bool {
	keys := s.kept.Keys()
	slices.Reverse(keys)
	items := make([]share.Item, 0, len(keys)+1)
	items = append(items, share.Item{Path: s.path(added.origin), Weight: weigh(added)})
	for _, k := range keys {
		v, _ := s.kept.Peek(k)
		items = append(items, share.Item{Path: s.path(v.origin), Weight: weigh(v)})
	}
	kept := share.KeepWithRoom(items, limit)
	for i, stays := range kept[1:] {
		if !stays {
			s.kept.Remove(keys[i])
		}
	}
	return kept[0]
}

// Get returns the value, if it is there and was put within the period.
func (s *Pending[K, V]) Get(key K, now time.Time) (value V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.kept.Peek(key)
	if !ok {
		return value, false
	}
	if now.Sub(v.at) > pendingFor {
		s.kept.Remove(key)
		return value, false
	}
	return v.value, true
}
