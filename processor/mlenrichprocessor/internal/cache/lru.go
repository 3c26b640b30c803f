package cache

import (
	"hash/maphash"
	"time"
)

// LRU is a map with a limit of entries and an age at which an unused entry
// expires. It is not safe for concurrent use.
//
// Every use renews an entry, so the least recently used entries are also the
// first to expire. Entries lie in pages and refer to each other by index.
type LRU[K comparable, V any] struct {
	pages [][]entry[K, V]
	// buckets has the first entry of each hash, cut to the bits that it needs,
	// or none. The seed is random, so that clients cannot craft collisions.
	buckets []int32
	seed    maphash.Seed
	n       int
	// newest and oldest are the ends of the list of uses, and free is the first
	// unused entry. Each may be none.
	newest, oldest, free int32
	limit                int
	maxAge               time.Duration
	evicted              int64
	// ahead keeps the compiler from omitting ReadAhead.
	ahead int64
	// onRemove, if set, is called with each value that is removed.
	onRemove func(*V)
}

// entry is in the list of uses, or in the list of unused entries.
type entry[K comparable, V any] struct {
	key  K
	hash uint32
	// next is the next entry of the same bucket, or none.
	next         int32
	newer, older int32
	used         int64 // nanoseconds since 1970
	value        V
}

// none is the index that means "no entry".
const none int32 = -1

// pageEntries is the number of entries in a page. Pages are kept once made.
const pageEntries = 128

// NewLRU returns an empty LRU of at most limit entries, which must be at least
// 1. An entry expires maxAge after its last use. onRemove may be nil.
func NewLRU[K comparable, V any](limit int, maxAge time.Duration, onRemove func(*V)) *LRU[K, V] {
	return &LRU[K, V]{buckets: []int32{none}, seed: maphash.MakeSeed(),
		newest: none, oldest: none, free: none, limit: limit, maxAge: maxAge, onRemove: onRemove}
}

func (c *LRU[K, V]) entry(at int32) *entry[K, V] {
	return &c.pages[at/pageEntries][at%pageEntries]
}

// Find returns the value of a key and renews its entry, or returns nil. The
// pointer is valid until the next call of Find, Ensure, Insert or
// EvictOldest.
func (c *LRU[K, V]) Find(key K, now time.Time) *V {
	at := c.search(key, c.hash(key))
	if at == none {
		return nil
	}
	e := c.entry(at)
	if c.expired(e, now) {
		c.remove(at)
		return nil
	}
	e.used = now.UnixNano()
	if at != c.newest {
		c.unlink(e)
		c.link(at, e)
	}
	return &e.value
}

// ReadAhead brings the first entry of a key's bucket, which is most often the key's, into
// the processor's caches, and changes nothing. Calls for several keys, one after the
// other, wait for memory at the same time; Find would each time wait for it alone.
func (c *LRU[K, V]) ReadAhead(key K) {
	if at := *c.bucket(c.hash(key)); at != none {
		c.ahead |= c.entry(at).used
	}
}

// Peek returns the value of a key without renewing its entry, or nil. The entry
// may have expired.
func (c *LRU[K, V]) Peek(key K) *V {
	at := c.search(key, c.hash(key))
	if at == none {
		return nil
	}
	return &c.entry(at).value
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
	for c.oldest != none {
		expired := c.expired(c.entry(c.oldest), now)
		if !expired && c.n < c.limit {
			break
		}
		if !expired {
			c.evicted++
		}
		c.remove(c.oldest)
	}
	if c.free == none {
		c.addPage()
	}
	at := c.free
	e := c.entry(at)
	c.free = e.older
	e.key, e.hash, e.used = key, c.hash(key), now.UnixNano()
	c.link(at, e)
	c.n++
	if c.n > len(c.buckets) {
		c.rehash()
	} else {
		first := c.bucket(e.hash)
		e.next, *first = *first, at
	}
	return &e.value
}

// EvictOldest removes the least recently used entry, if there is any.
func (c *LRU[K, V]) EvictOldest() {
	if c.oldest != none {
		c.evicted++
		c.remove(c.oldest)
	}
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
func (c *LRU[K, V]) Size(index string) Size { return Size{index, c.n, c.evicted} }

func (c *LRU[K, V]) hash(key K) uint32 { return uint32(maphash.Comparable(c.seed, key)) }

func (c *LRU[K, V]) bucket(hash uint32) *int32 { return &c.buckets[int(hash)&(len(c.buckets)-1)] }

// search returns the index of a key's entry, or none.
func (c *LRU[K, V]) search(key K, hash uint32) int32 {
	at := *c.bucket(hash)
	for at != none {
		e := c.entry(at)
		if e.hash == hash && e.key == key {
			break
		}
		at = e.next
	}
	return at
}

// rehash doubles the number of buckets.
func (c *LRU[K, V]) rehash() {
	c.buckets = make([]int32, 2*len(c.buckets))
	for i := range c.buckets {
		c.buckets[i] = none
	}
	for at := c.oldest; at != none; {
		e := c.entry(at)
		first := c.bucket(e.hash)
		e.next, *first = *first, at
		at = e.newer
	}
}

// addPage adds a page of unused entries.
func (c *LRU[K, V]) addPage() {
	first := int32(len(c.pages) * pageEntries)
	page := make([]entry[K, V], min(pageEntries, c.limit))
	for i := range page {
		page[i].older = first + int32(i) + 1
	}
	page[len(page)-1].older = none
	c.pages, c.free = append(c.pages, page), first
}

// link makes an entry the newest.
func (c *LRU[K, V]) link(at int32, e *entry[K, V]) {
	e.newer, e.older = none, c.newest
	if c.newest != none {
		c.entry(c.newest).newer = at
	} else {
		c.oldest = at
	}
	c.newest = at
}

func (c *LRU[K, V]) unlink(e *entry[K, V]) {
	if e.newer != none {
		c.entry(e.newer).older = e.older
	} else {
		c.newest = e.older
	}
	if e.older != none {
		c.entry(e.older).newer = e.newer
	} else {
		c.oldest = e.newer
	}
}

func (c *LRU[K, V]) expired(e *entry[K, V], now time.Time) bool {
	return now.UnixNano()-e.used > int64(c.maxAge)
}

// remove empties an entry for the next Insert.
func (c *LRU[K, V]) remove(at int32) {
	e := c.entry(at)
	link := c.bucket(e.hash)
	for *link != at {
		link = &c.entry(*link).next
	}
	*link = e.next
	c.n--
	c.unlink(e)
	if c.onRemove != nil {
		c.onRemove(&e.value)
	}
	*e = entry[K, V]{older: c.free}
	c.free = at
}
