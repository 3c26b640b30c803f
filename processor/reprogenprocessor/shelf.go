package reprogenprocessor

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
)

// shelf keeps values until what they belong to comes, for a time and up to a
// number of bytes. Of whoever has more than its share the least recently put
// ones make room. It is safe for concurrent use.
type shelf[K comparable, V any] struct {
	mu      sync.Mutex
	kept    *simplelru.LRU[K, shelved[V]]
	bytes   int64
	limit   int64
	entries int64
	period  time.Duration
	path    func(fairness.Origin) fairness.Path
}

type shelved[V any] struct {
	value  V
	origin fairness.Origin
	weight int64
	at     time.Time
}

func newShelf[K comparable, V any](entries int, bytes int64, period time.Duration, path func(fairness.Origin) fairness.Path) (*shelf[K, V], error) {
	s := &shelf[K, V]{limit: bytes, entries: int64(entries), period: period, path: path}
	var err error
	s.kept, err = simplelru.NewLRU(entries, func(_ K, v shelved[V]) { s.bytes -= v.weight })
	return s, err
}

// put keeps a value of an origin that takes weight bytes, if there is room for
// it.
func (s *shelf[K, V]) put(key K, value V, weight int64, origin fairness.Origin, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(key)
	added := shelved[V]{value, origin, weight, now}
	if int64(s.kept.Len()) >= s.entries && !s.makeRoom(added, s.entries, func(shelved[V]) int64 { return 1 }) ||
		s.bytes+weight > s.limit && !s.makeRoom(added, s.limit, func(v shelved[V]) int64 { return v.weight }) {
		return
	}
	s.bytes += weight
	s.kept.Add(key, added)
}

// makeRoom removes what passes the shares of a limit, and reports whether what is
// to be added does not.
func (s *shelf[K, V]) makeRoom(added shelved[V], limit int64, weigh func(shelved[V]) int64) bool {
	keys := s.kept.Keys()
	slices.Reverse(keys)
	items := make([]fairness.Item, 0, len(keys)+1)
	items = append(items, fairness.Item{Path: s.path(added.origin), Weight: weigh(added)})
	for _, k := range keys {
		v, _ := s.kept.Peek(k)
		items = append(items, fairness.Item{Path: s.path(v.origin), Weight: weigh(v)})
	}
	kept := fairness.KeepWithRoom(items, limit)
	for i, stays := range kept[1:] {
		if !stays {
			s.kept.Remove(keys[i])
		}
	}
	return kept[0]
}

// get returns the value, if it is there and was put within the period.
func (s *shelf[K, V]) get(key K, now time.Time) (value V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.kept.Peek(key)
	if !ok {
		return value, false
	}
	if now.Sub(v.at) > s.period {
		s.kept.Remove(key)
		return value, false
	}
	return v.value, true
}
