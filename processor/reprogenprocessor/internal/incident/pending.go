package incident

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// pendingFor is how long a value is kept whose failure does not come.
const pendingFor = 30 * time.Minute

// Pending keeps values until the failure that they belong to comes, for pendingFor
// and up to a number of bytes. The oldest values of an origin with more than its share make
// room. It is safe for concurrent use.
type Pending[K comparable, V any] struct {
	mu    sync.Mutex
	kept  *simplelru.LRU[K, pendingValue[V]]
	bytes int64
	limit int64
	path  func(share.Origin) share.Path
}

type pendingValue[V any] struct {
	value  V
	origin share.Origin
	weight int64
	at     time.Time
}

// NewPending returns an empty Pending.
func NewPending[K comparable, V any](bytes int64, path func(share.Origin) share.Path) *Pending[K, V] {
	s := &Pending[K, V]{limit: bytes, path: path}
	// The bytes alone limit it; the size is positive, so there is no error.
	s.kept, _ = simplelru.NewLRU(math.MaxInt, func(_ K, v pendingValue[V]) { s.bytes -= v.weight })
	return s
}

// Put keeps a value of an origin that takes weight bytes, one at least, if there is room
// for it.
func (s *Pending[K, V]) Put(key K, value V, weight int64, origin share.Origin, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(key)
	if s.bytes+weight > s.limit && !s.makeRoom(share.Item{Path: s.path(origin), Weight: weight}) {
		return
	}
	s.bytes += weight
	s.kept.Add(key, pendingValue[V]{value, origin, weight, now})
}

// makeRoom removes what passes its share, and reports whether what is to be added does not.
func (s *Pending[K, V]) makeRoom(added share.Item) bool {
	keys := s.kept.Keys()
	slices.Reverse(keys)
	items := append(make([]share.Item, 0, len(keys)+1), added)
	for _, k := range keys {
		v, _ := s.kept.Peek(k)
		items = append(items, share.Item{Path: s.path(v.origin), Weight: v.weight})
	}
	kept := share.KeepWithRoom(items, s.limit)
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
	if ok && now.Sub(v.at) > pendingFor {
		s.kept.Remove(key)
		return value, false
	}
	return v.value, ok
}
