package model

import "hash/maphash"

// streamTable finds streams by their keys. A key is large, and this way only its
// stream has it.
type streamTable struct {
	seed   maphash.Seed
	byHash map[uint64]*stream
	n      int
}

func newStreamTable() streamTable {
	return streamTable{seed: maphash.MakeSeed(), byHash: make(map[uint64]*stream)}
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

// remove removes a stream if it is there.
func (t *streamTable) remove(one *stream) {
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
