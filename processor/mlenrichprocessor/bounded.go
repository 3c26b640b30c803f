package mlenrichprocessor

import (
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
	// spare are entries that went. In service nearly every new entry takes the
	// place of an old one.
	spare []*aged[V]
	// forget, where it is set, empties a value that goes, for its next use.
	forget func(*V)
}

// maxSpare is how many entries are kept for use again: as many as one batch
// adds.
const maxSpare = 256

type aged[V any] struct {
	value V
	used  time.Time
}

// newBounded returns an empty map of at most limit entries, at least 1.
func newBounded[K comparable, V any](limit int, maxAge time.Duration) *bounded[K, V] {
	lru, err := simplelru.NewLRU[K, *aged[V]](limit, nil)
	if err != nil {
		// The limits are constants of this package.
		panic(err)
	}
	return &bounded[K, V]{lru: lru, limit: limit, maxAge: maxAge}
}

// find returns the entry of a key and renews it, or nil. It is valid until the
// next call of find, ensure or insert.
func (b *bounded[K, V]) find(key K, now time.Time) *V {
	entry, ok := b.lru.Get(key)
	if !ok {
		return nil
	}
	if now.Sub(entry.used) > b.maxAge {
		b.remove(key, entry)
		return nil
	}
	entry.used = now
	return &entry.value
}

// peek returns the entry of a key without renewing it, or nil.
func (b *bounded[K, V]) peek(key K) *V {
	entry, ok := b.lru.Peek(key)
	if !ok {
		return nil
	}
	return &entry.value
}

// ensure returns the entry of a key, renewed, or a new one with a zero value.
func (b *bounded[K, V]) ensure(key K, now time.Time) *V {
	if found := b.find(key, now); found != nil {
		return found
	}
	return b.insert(key, now)
}

// insert returns a new entry with a zero value, for a key that find has just
// not found.
func (b *bounded[K, V]) insert(key K, now time.Time) *V {
	for {
		oldest, entry, ok := b.lru.GetOldest()
		if !ok || now.Sub(entry.used) <= b.maxAge && b.lru.Len() < b.limit {
			break
		}
		if now.Sub(entry.used) <= b.maxAge {
			b.evicted++
		}
		b.remove(oldest, entry)
	}
	var entry *aged[V]
	if last := len(b.spare) - 1; last >= 0 {
		entry, b.spare[last] = b.spare[last], nil
		b.spare = b.spare[:last]
	} else {
		entry = new(aged[V])
	}
	entry.used = now
	b.lru.Add(key, entry)
	return &entry.value
}

// room says whether an entry can be added without another going that is not
// forgotten anyway.
func (b *bounded[K, V]) room(now time.Time) bool {
	_, entry, ok := b.lru.GetOldest()
	return !ok || b.lru.Len() < b.limit || now.Sub(entry.used) > b.maxAge
}

// remove keeps the entry for the next insert, without what it referred to.
func (b *bounded[K, V]) remove(key K, entry *aged[V]) {
	b.lru.Remove(key)
	if b.forget != nil {
		b.forget(&entry.value)
	} else {
		*entry = aged[V]{}
	}
	if len(b.spare) < maxSpare {
		b.spare = append(b.spare, entry)
	}
}

// evictOldest makes room where the entries together have too much of something.
func (b *bounded[K, V]) evictOldest() {
	if oldest, entry, ok := b.lru.GetOldest(); ok {
		b.evicted++
		b.remove(oldest, entry)
	}
}

func (b *bounded[K, V]) len() int { return b.lru.Len() }
