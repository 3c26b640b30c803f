package mlenrichprocessor

import "time"

// pageSize is how many entries a bounded map takes memory for at a time.
const pageSize = 128

// bounded is a map with a greatest number of entries and an age at which an
// entry that nobody used is forgotten. It is not safe for concurrent use.
//
// Every use renews an entry, so the least recently used entries are also the
// first to expire, and expiry is a look at that end of a list. The entries
// lie in pages and are used again: in service nearly every span replaces an
// entry, and the known libraries allocate for each. Their expiring caches also
// start a goroutine that cannot be stopped.
type bounded[K comparable, V any] struct {
	places map[K]int32
	pages  []*[pageSize]entry[K, V]
	used   int32 // how many entries of the pages were ever taken
	free   int32 // the first of those given back, linked by older

	newest, oldest int32

	limit   int
	maxAge  time.Duration
	evicted int64
	// epoch is the time of the first use; entries count from it, in the
	// clock that does not jump.
	epoch time.Time
}

type entry[K comparable, V any] struct {
	key          K
	value        V
	renewed      time.Duration // after epoch
	newer, older int32
}

// nowhere is the place of no entry.
const nowhere int32 = -1

func newBounded[K comparable, V any](limit int, maxAge time.Duration) *bounded[K, V] {
	return &bounded[K, V]{
		places: make(map[K]int32),
		free:   nowhere, newest: nowhere, oldest: nowhere,
		limit: limit, maxAge: maxAge,
	}
}

// find returns the entry of a key and renews it, or nil. It is valid until the
// next call of find or ensure.
func (b *bounded[K, V]) find(key K, now time.Time) *V {
	at, ok := b.places[key]
	if !ok {
		return nil
	}
	e, t := b.at(at), b.since(now)
	if t-e.renewed > b.maxAge {
		b.remove(at)
		return nil
	}
	e.renewed = t
	if b.newest != at {
		b.unlink(e)
		b.link(at, e)
	}
	return &e.value
}

// peek returns the entry of a key without renewing it, or nil.
func (b *bounded[K, V]) peek(key K) *V {
	at, ok := b.places[key]
	if !ok {
		return nil
	}
	return &b.at(at).value
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
	t := b.since(now)
	for b.oldest != nowhere && t-b.at(b.oldest).renewed > b.maxAge {
		b.remove(b.oldest)
	}
	if len(b.places) >= b.limit {
		b.evicted++
		b.remove(b.oldest)
	}
	at := b.take()
	e := b.at(at)
	e.key, e.renewed = key, t
	b.link(at, e)
	b.places[key] = at
	return &e.value
}

func (b *bounded[K, V]) len() int { return len(b.places) }

func (b *bounded[K, V]) since(now time.Time) time.Duration {
	if b.epoch.IsZero() {
		b.epoch = now
	}
	return now.Sub(b.epoch)
}

func (b *bounded[K, V]) at(place int32) *entry[K, V] {
	return &b.pages[place/pageSize][place%pageSize]
}

// take returns the place of an entry that nobody has.
func (b *bounded[K, V]) take() int32 {
	if at := b.free; at != nowhere {
		b.free = b.at(at).older
		return at
	}
	at := b.used
	b.used++
	if int(at/pageSize) == len(b.pages) {
		b.pages = append(b.pages, new([pageSize]entry[K, V]))
	}
	return at
}

// remove gives an entry back, without anything that it referred to.
func (b *bounded[K, V]) remove(at int32) {
	e := b.at(at)
	delete(b.places, e.key)
	b.unlink(e)
	*e = entry[K, V]{older: b.free}
	b.free = at
}

// link makes an entry the newest.
func (b *bounded[K, V]) link(at int32, e *entry[K, V]) {
	e.newer, e.older = nowhere, b.newest
	if b.newest != nowhere {
		b.at(b.newest).newer = at
	} else {
		b.oldest = at
	}
	b.newest = at
}

func (b *bounded[K, V]) unlink(e *entry[K, V]) {
	if e.newer != nowhere {
		b.at(e.newer).older = e.older
	} else {
		b.newest = e.older
	}
	if e.older != nowhere {
		b.at(e.older).newer = e.newer
	} else {
		b.oldest = e.newer
	}
}
