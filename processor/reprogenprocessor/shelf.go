package reprogenprocessor

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// shelf keeps values until what they belong to comes, for a time and up to a
// number of bytes. The least recently put one makes room. It is safe for
// concurrent use.
type shelf[K comparable, V any] struct {
	mu     sync.Mutex
	kept   *simplelru.LRU[K, shelved[V]]
	bytes  int64
	limit  int64
	period time.Duration
}

type shelved[V any] struct {
	value  V
	weight int64
	at     time.Time
}

func newShelf[K comparable, V any](entries int, bytes int64, period time.Duration) (*shelf[K, V], error) {
	s := &shelf[K, V]{limit: bytes, period: period}
	var err error
	s.kept, err = simplelru.NewLRU(entries, func(_ K, v shelved[V]) { s.bytes -= v.weight })
	return s, err
}

// put keeps a value that takes weight bytes. One that is larger than the
// shelf is not kept.
func (s *shelf[K, V]) put(key K, value V, weight int64, now time.Time) {
	if weight > s.limit {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(key)
	for s.bytes+weight > s.limit {
		s.kept.RemoveOldest()
	}
	s.bytes += weight
	s.kept.Add(key, shelved[V]{value, weight, now})
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
