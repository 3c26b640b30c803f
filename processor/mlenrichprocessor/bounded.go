package mlenrichprocessor

import (
	"hash/maphash"
	"time"
)

// bounded is a map with a greatest number of entries and an age at which an
// entry that nobody used is forgotten. It is not safe for concurrent use.
//
// The entries lie in pages and refer to each other by their places, so that
// the garbage collector has nothing to follow where keys and values refer to
// nothing: it would spend more time on a full store than the spans take. See
// docs/adr/0004-caches.md.
//
// Every use renews an entry, so the least recently used entries are also the
// first to expire, and expiry is a look at that end of the list.
type bounded[K comparable, V any] struct {
	pages [][]boundedEntry[K, V]
	// first has for each hash, cut to as many bits as it needs, the place of
	// the first entry, or nowhere. The seed is random: nobody can send keys of
	// which it is known that their hashes are alike.
	first []int32
	seed  maphash.Seed
	n     int
	// newest and oldest are the ends of the list, and free the first place
	// that is not in use, or nowhere.
	newest, oldest, free int32
	limit                int
	maxAge               time.Duration
	evicted              int64
	// forget, where it is set, empties a value that goes.
	forget func(*V)
}

// boundedEntry is an entry in the list of uses, or a free one in a list of such.
type boundedEntry[K comparable, V any] struct {
	key  K
	hash uint32
	// next is the place of another entry with such a hash, or nowhere.
	next         int32
	newer, older int32
	// used is when, in nanoseconds since 1970.
	used  int64
	value V
}

// pageEntries is how many entries a page has. There are as many pages as have
// been needed at once.
const pageEntries = 128

// newBounded returns an empty map of at most limit entries, at least 1.
func newBounded[K comparable, V any](limit int, maxAge time.Duration) *bounded[K, V] {
	return &bounded[K, V]{first: []int32{nowhere}, seed: maphash.MakeSeed(),
		newest: nowhere, oldest: nowhere, free: nowhere, limit: limit, maxAge: maxAge}
}

func (b *bounded[K, V]) entry(place int32) *boundedEntry[K, V] {
	return &b.pages[place/pageEntries][place%pageEntries]
}

// find returns the entry of a key and renews it, or nil. It is valid until the
// entry goes, which any other call may cause.
func (b *bounded[K, V]) find(key K, now time.Time) *V {
	place := b.search(key, b.hash(key))
	if place == nowhere {
		return nil
	}
	e := b.entry(place)
	if b.expired(e, now) {
		b.remove(place)
		return nil
	}
	e.used = now.UnixNano()
	if place != b.newest {
		b.unlink(e)
		b.link(place, e)
	}
	return &e.value
}

// peek returns the entry of a key without renewing it, or nil.
func (b *bounded[K, V]) peek(key K) *V {
	place := b.search(key, b.hash(key))
	if place == nowhere {
		return nil
	}
	return &b.entry(place).value
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
	for b.oldest != nowhere {
		expired := b.expired(b.entry(b.oldest), now)
		if !expired && b.len() < b.limit {
			break
		}
		if !expired {
			b.evicted++
		}
		b.remove(b.oldest)
	}
	if b.free == nowhere {
		b.addPage()
	}
	place := b.free
	e := b.entry(place)
	b.free = e.older
	e.key, e.hash, e.used = key, b.hash(key), now.UnixNano()
	b.link(place, e)
	b.n++
	if b.n > len(b.first) {
		b.spread()
	} else {
		first := b.firstOf(e.hash)
		e.next, *first = *first, place
	}
	return &e.value
}

func (b *bounded[K, V]) hash(key K) uint32 { return uint32(maphash.Comparable(b.seed, key)) }

func (b *bounded[K, V]) firstOf(hash uint32) *int32 { return &b.first[int(hash)&(len(b.first)-1)] }

// search returns the place of a key's entry, or nowhere.
func (b *bounded[K, V]) search(key K, hash uint32) int32 {
	place := *b.firstOf(hash)
	for place != nowhere {
		e := b.entry(place)
		if e.hash == hash && e.key == key {
			break
		}
		place = e.next
	}
	return place
}

// spread makes room for twice as many hashes.
func (b *bounded[K, V]) spread() {
	b.first = make([]int32, 2*len(b.first))
	for i := range b.first {
		b.first[i] = nowhere
	}
	for place := b.oldest; place != nowhere; {
		e := b.entry(place)
		first := b.firstOf(e.hash)
		e.next, *first = *first, place
		place = e.newer
	}
}

// addPage adds a page of free entries.
func (b *bounded[K, V]) addPage() {
	first := int32(len(b.pages) * pageEntries)
	page := make([]boundedEntry[K, V], min(pageEntries, b.limit))
	for i := range page {
		page[i].older = first + int32(i) + 1
	}
	page[len(page)-1].older = nowhere
	b.pages, b.free = append(b.pages, page), first
}

// link makes an entry the newest.
func (b *bounded[K, V]) link(place int32, e *boundedEntry[K, V]) {
	e.newer, e.older = nowhere, b.newest
	if b.newest != nowhere {
		b.entry(b.newest).newer = place
	} else {
		b.oldest = place
	}
	b.newest = place
}

func (b *bounded[K, V]) unlink(e *boundedEntry[K, V]) {
	if e.newer != nowhere {
		b.entry(e.newer).older = e.older
	} else {
		b.newest = e.older
	}
	if e.older != nowhere {
		b.entry(e.older).newer = e.newer
	} else {
		b.oldest = e.newer
	}
}

func (b *bounded[K, V]) expired(e *boundedEntry[K, V], now time.Time) bool {
	return now.UnixNano()-e.used > int64(b.maxAge)
}

// remove empties an entry for the next insert.
func (b *bounded[K, V]) remove(place int32) {
	e := b.entry(place)
	at := b.firstOf(e.hash)
	for *at != place {
		at = &b.entry(*at).next
	}
	*at = e.next
	b.n--
	b.unlink(e)
	if b.forget != nil {
		b.forget(&e.value)
	}
	*e = boundedEntry[K, V]{older: b.free}
	b.free = place
}

// evictOldest makes room where the entries together have too much of something.
func (b *bounded[K, V]) evictOldest() {
	if b.oldest != nowhere {
		b.evicted++
		b.remove(b.oldest)
	}
}

func (b *bounded[K, V]) len() int { return b.n }
