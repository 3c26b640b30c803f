package series

import "hash/maphash"

// Table finds streams by a hash of their keys. A key is large, and this way only its
// stream has it. The probability that any two of the most streams have the same hash is
// below 1 in 100 million; then the later one replaces the other.
type Table struct {
	seed             maphash.Seed
	byHash, byOrigin map[uint64]*Stream
	// last is the stream that ofOrigin has returned last, nil at first.
	last *Stream
}

// NewTable returns an empty Table.
func NewTable() *Table {
	return &Table{seed: maphash.MakeSeed(), byHash: make(map[uint64]*Stream), byOrigin: make(map[uint64]*Stream)}
}

// Find returns the stream with a key, or nil.
func (t *Table) Find(key *Key) *Stream {
	if one := t.byHash[maphash.Comparable(t.seed, *key)]; one != nil && one.Key == *key {
		return one
	}
	return nil
}

// Len is the number of streams.
func (t *Table) Len() int { return len(t.byHash) }

// Add adds a stream, whose key is not there.
func (t *Table) Add(one *Stream) { t.byHash[maphash.Comparable(t.seed, one.Key)] = one }

// OfOrigin returns the stream with an origin, or nil. Senders repeat their streams in
// the same order, so the next one is mostly the one that came next before.
func (t *Table) OfOrigin(origin uint64) *Stream {
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
	if hash := maphash.Comparable(t.seed, one.Key); t.byHash[hash] == one {
		delete(t.byHash, hash)
	}
}

// MaxStreams limits the streams of metrics.
const MaxStreams = 300_000
