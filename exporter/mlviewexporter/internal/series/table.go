package series

import "hash/maphash"

// Table finds streams by their keys. A key is large, and this way only its
// stream has it.
type Table struct {
	seed   maphash.Seed
	byHash map[uint64]*Stream
	N      int

	byOrigin map[uint64]*Stream
	// last is the stream that ofOrigin has returned last, nil at first.
	last *Stream
}

// NewTable returns an empty Table.
func NewTable() *Table {
	return &Table{seed: maphash.MakeSeed(), byHash: make(map[uint64]*Stream), byOrigin: make(map[uint64]*Stream)}
}

// Find returns the stream with a key, or nil.
func (t *Table) Find(key *Key) *Stream {
	one := t.byHash[maphash.Comparable(t.seed, *key)]
	for one != nil && one.Key != *key {
		one = one.next
	}
	return one
}

// Add adds a stream, whose key is not there.
func (t *Table) Add(one *Stream) {
	hash := maphash.Comparable(t.seed, one.Key)
	one.next = t.byHash[hash]
	t.byHash[hash] = one
	t.N++
}

// OfOrigin returns the stream with an origin, or nil. Senders repeat their streams in
// the same order, so the next one is mostly the one that came next before.
func (t *Table) OfOrigin(origin uint64) *Stream {
	if origin == 0 {
		return nil
	}
	var one *Stream
	if t.last != nil && t.last.after != nil && t.last.after.origin == origin {
		one = t.last.after
	} else if one = t.byOrigin[origin]; one != nil && t.last != nil {
		t.last.after = one
	}
	if one != nil {
		t.last = one
	}
	return one
}

// SetOrigin sets the origin of a stream; 0 means none.
func (t *Table) SetOrigin(one *Stream, origin uint64) {
	if one.origin == origin {
		return
	}
	if one.origin != 0 {
		delete(t.byOrigin, one.origin)
	}
	if one.origin = origin; origin == 0 {
		return
	}
	if other := t.byOrigin[origin]; other != nil {
		other.origin = 0
	}
	t.byOrigin[origin] = one
}

// Remove removes a stream if it is there.
func (t *Table) Remove(one *Stream) {
	t.SetOrigin(one, 0)
	if one.after = nil; t.last == one {
		t.last = nil
	}
	hash := maphash.Comparable(t.seed, one.Key)
	first := t.byHash[hash]
	if first == one {
		if one.next == nil {
			delete(t.byHash, hash)
		} else {
			t.byHash[hash] = one.next
		}
		t.N--
		return
	}
	for before := first; before != nil; before = before.next {
		if before.next == one {
			before.next = one.next
			t.N--
			return
		}
	}
}

// MaxStreams limits the streams of metrics.
const MaxStreams = 300_000
