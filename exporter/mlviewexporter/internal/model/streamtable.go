package model

import "hash/maphash"

// streamTable finds streams by their keys. A key is large, and this way only its
// stream has it.
type streamTable struct {
	seed   maphash.Seed
	byHash map[uint64]*stream
	n      int

	byOrigin map[uint64]*stream
	// last is the stream that ofOrigin has returned last, nil at first.
	last *stream
}

func newStreamTable() *streamTable {
	return &streamTable{seed: maphash.MakeSeed(), byHash: make(map[uint64]*stream), byOrigin: make(map[uint64]*stream)}
}

// find returns the stream with a key, or nil.
func (t *streamTable) find(key *streamKey) *stream {
	one := t.byHash[maphash.Comparable(t.seed, *key)]
	for one != nil && one.streamKey != *key {
		one = one.next
	}
	return one
}

// add adds a stream, whose key is not there.
func (t *streamTable) add(one *stream) {
	hash := maphash.Comparable(t.seed, one.streamKey)
	one.next = t.byHash[hash]
	t.byHash[hash] = one
	t.n++
}

// ofOrigin returns the stream with an origin, or nil. Senders repeat their streams in
// the same order, so the next one is mostly the one that came next before.
func (t *streamTable) ofOrigin(origin uint64) *stream {
	if origin == 0 {
		return nil
	}
	var one *stream
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

// setOrigin sets the origin of a stream; 0 means none.
func (t *streamTable) setOrigin(one *stream, origin uint64) {
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

// remove removes a stream if it is there.
func (t *streamTable) remove(one *stream) {
	t.setOrigin(one, 0)
	if one.after = nil; t.last == one {
		t.last = nil
	}
	hash := maphash.Comparable(t.seed, one.streamKey)
	first := t.byHash[hash]
	if first == one {
		if one.next == nil {
			delete(t.byHash, hash)
		} else {
			t.byHash[hash] = one.next
		}
		t.n--
		return
	}
	for before := first; before != nil; before = before.next {
		if before.next == one {
			before.next = one.next
			t.n--
			return
		}
	}
}
