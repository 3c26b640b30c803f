package mlenrichprocessor

import (
	"fmt"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// bounded is a map with a greatest number of entries and an age at which an
// entry that nobody used is forgotten. It is not safe for concurrent use.
//
// The library's own expirable.LRU is not used because it starts a goroutine
// that cannot be stopped. Here every use renews an entry, so the least
// recently used entries are also the first to expire, and expiry is a look at
// that end of the list.
type bounded[K comparable, V any] struct {
	lru     *simplelru.LRU[K, *aged[V]]
	limit   int
	maxAge  time.Duration
	evicted int64
}

type aged[V any] struct {
	value V
	used  time.Time
}

func newBounded[K comparable, V any](limit int, maxAge time.Duration) (*bounded[K, V], error) {
	lru, err := simplelru.NewLRU[K, *aged[V]](limit, nil)
	if err != nil {
		return nil, fmt.Errorf("create an index of %d entries: %w", limit, err)
	}
	return &bounded[K, V]{lru: lru, limit: limit, maxAge: maxAge}, nil
}

// find returns the entry of a key and renews it, or nil.
func (b *bounded[K, V]) find(key K, now time.Time) *V {
	entry, ok := b.lru.Get(key)
	if !ok {
		return nil
	}
	if now.Sub(entry.used) > b.maxAge {
		b.lru.Remove(key)
		return nil
	}
	entry.used = now
	return &entry.value
}

// ensure returns the entry of a key, renewed, or a new one with a zero value.
func (b *bounded[K, V]) ensure(key K, now time.Time) *V {
	if found := b.find(key, now); found != nil {
		return found
	}
	b.expire(now)
	if b.lru.Len() >= b.limit {
		b.evicted++
	}
	entry := &aged[V]{used: now}
	b.lru.Add(key, entry)
	return &entry.value
}

// expire forgets what is too old.
func (b *bounded[K, V]) expire(now time.Time) {
	for {
		key, entry, ok := b.lru.GetOldest()
		if !ok || now.Sub(entry.used) <= b.maxAge {
			return
		}
		b.lru.Remove(key)
	}
}

func (b *bounded[K, V]) len() int { return b.lru.Len() }
