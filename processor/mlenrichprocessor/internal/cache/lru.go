// Package cache answers one question: how can much be remembered, within a
// bound and for a time, without work for the garbage collector?
//
// An LRU holds entries of one size and an Arena holds bytes of any length.
// Neither contains pointers of its own, so the garbage collector has nothing to
// follow in a full one. With golang-lru and strings in their place ml_enrich
// cost 700 ns a span in the whole collector, and 86 ns with these: see
// docs/adr/0004-caches.md. BenchmarkLRU measures the LRU alone.
package cache

import (
	"hash/maphash"
	"sync"
	"time"
)

// LRU is a map with a limit of entries and an age at which an unused entry
// expires. It is not safe for concurrent use.
//
// Every use renews an entry, so the least recently used entries are also the
// first to expire. Entries lie in pages, which are kept once made, and refer to each
// other by index.
type LRU[K comparable, V any] struct {
	at    map[K]int32
	pages [][]entry[K, V]
	// made is how many entries the pages have in use, and free are those of them that
	// were removed. Entry 0 is the end of the list of uses, on both sides.
	made     int32
	free     []int32
	limit    int
	maxAge   time.Duration
	evicted  int64
	onRemove func(*V)
}

// entry is in the list of uses.
type entry[K comparable, V any] struct {
	key          K
	newer, older int32
	used         int64 // nanoseconds since 1970
	value        V
}

// pageEntries is the number of entries in a page.
const pageEntries = 128

// NewLRU returns an empty LRU of at most limit entries, which must be at least
// 1. An entry expires maxAge after its last use. onRemove, which may be nil, is called
// with each value that is removed.
func NewLRU[K comparable, V any](limit int, maxAge time.Duration, onRemove func(*V)) *LRU[K, V] {
	c := &LRU[K, V]{at: make(map[K]int32), limit: limit, maxAge: maxAge, onRemove: onRemove}
	c.take()
	return c
}

func (c *LRU[K, V]) entry(at int32) *entry[K, V] { return &c.pages[at/pageEntries][at%pageEntries] }

// Find returns the value of a key and renews its entry, or returns nil. The
// pointer is valid until the next call of Find, Ensure, Insert or
// EvictOldest.
func (c *LRU[K, V]) Find(key K, now time.Time) *V {
	at := c.at[key]
	if at == 0 {
		return nil
	}
	e := c.entry(at)
	if c.expired(e, now) {
		c.remove(at)
		return nil
	}
	e.used = now.UnixNano()
	c.unlink(e)
	c.link(at, e)
	return &e.value
}

// Peek returns the value of a key without renewing its entry, or nil. The entry
// may have expired.
func (c *LRU[K, V]) Peek(key K) *V {
	if at := c.at[key]; at != 0 {
		return &c.entry(at).value
	}
	return nil
}

// Ensure returns the value of a key, renewed, or a new zero value.
func (c *LRU[K, V]) Ensure(key K, now time.Time) *V {
	if found := c.Find(key, now); found != nil {
		return found
	}
	return c.Insert(key, now)
}

// Insert returns a new zero value for a key that Find has just not found.
func (c *LRU[K, V]) Insert(key K, now time.Time) *V {
	for len(c.at) > 0 && c.expired(c.entry(c.oldest()), now) {
		c.remove(c.oldest())
	}
	if len(c.at) >= c.limit {
		c.EvictOldest()
	}
	at := c.take()
	e := c.entry(at)
	e.key, e.used = key, now.UnixNano()
	c.at[key] = at
	c.link(at, e)
	return &e.value
}

// EvictOldest removes the least recently used entry, if there is any.
func (c *LRU[K, V]) EvictOldest() {
	if len(c.at) > 0 {
		c.evicted++
		c.remove(c.oldest())
	}
}

func (c *LRU[K, V]) oldest() int32 { return c.entry(0).newer }

// take returns the index of an unused entry.
func (c *LRU[K, V]) take() int32 {
	if n := len(c.free); n > 0 {
		at := c.free[n-1]
		c.free = c.free[:n-1]
		return at
	}
	if c.made%pageEntries == 0 {
		c.pages = append(c.pages, make([]entry[K, V], pageEntries))
	}
	c.made++
	return c.made - 1
}

// link makes an entry the newest.
func (c *LRU[K, V]) link(at int32, e *entry[K, V]) {
	end := c.entry(0)
	e.newer, e.older = 0, end.older
	c.entry(end.older).newer = at
	end.older = at
}

func (c *LRU[K, V]) unlink(e *entry[K, V]) {
	c.entry(e.newer).older = e.older
	c.entry(e.older).newer = e.newer
}

func (c *LRU[K, V]) expired(e *entry[K, V], now time.Time) bool {
	return now.UnixNano()-e.used > int64(c.maxAge)
}

// remove empties an entry for the next Insert.
func (c *LRU[K, V]) remove(at int32) {
	e := c.entry(at)
	c.unlink(e)
	delete(c.at, e.key)
	if c.onRemove != nil {
		c.onRemove(&e.value)
	}
	*e = entry[K, V]{}
	c.free = append(c.free, at)
}

// Seed is random, so that clients cannot craft collisions.
var Seed = maphash.MakeSeed()

// Hash returns a number for a text, to compare, so that the text need not be kept, and 0
// for no text.
func Hash(text string) uint64 {
	if text == "" {
		return 0
	}
	return max(maphash.String(Seed, text), 1)
}

// Size is the size of an index, for the processor's own telemetry.
type Size struct {
	Index string
	// Entries includes expired ones.
	Entries int
	// Evicted is how many entries were removed for lack of room.
	Evicted int64
}

// Size returns the size under the name of an index.
func (c *LRU[K, V]) Size(index string) Size { return Size{index, len(c.at), c.evicted} }

// Guard is a lock whose holders need the time.
type Guard struct {
	mu  sync.Mutex
	Now func() time.Time
}

// Lock takes the lock and returns the time before.
func (g *Guard) Lock() time.Time {
	now := g.Now()
	g.mu.Lock()
	return now
}

// Unlock gives the lock back.
func (g *Guard) Unlock() { g.mu.Unlock() }

// Locked is an LRU with the lock that its users take.
type Locked[K comparable, V any] struct {
	Guard
	All   *LRU[K, V]
	index string
}

// NewLocked returns an empty Locked, with the name of its index.
func NewLocked[K comparable, V any](index string, now func() time.Time, limit int, maxAge time.Duration) Locked[K, V] {
	return Locked[K, V]{Guard: Guard{Now: now}, All: NewLRU[K, V](limit, maxAge, nil), index: index}
}

// Size returns the size of the index. It takes the lock.
func (l *Locked[K, V]) Size() Size {
	l.Lock()
	defer l.Unlock()
	return l.All.Size(l.index)
}
