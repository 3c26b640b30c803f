package mlmetricsconnector

import "hash/maphash"

// recent remembers a value for each of the spans that were set most recently:
// at least as many as its size, at most twice as many. It keeps two maps of
// hashes and forgets the older one as a whole when the younger one is full,
// which takes less than a list in the order of use, and allocates nothing. Two
// spans with one hash are as good as impossible: the hash has 64 bits, and
// nobody outside knows its seed. It is not safe for concurrent use.
type recent[V any] struct {
	young, old map[uint64]V
	size       int
	seed       maphash.Seed
}

func newRecent[V any](size int) *recent[V] {
	return &recent[V]{young: make(map[uint64]V), old: make(map[uint64]V), size: size, seed: maphash.MakeSeed()}
}

// get returns what was set for a span, and whether anything was.
func (r *recent[V]) get(ref spanRef) (V, bool) {
	return r.of(maphash.Comparable(r.seed, ref))
}

func (r *recent[V]) of(hash uint64) (V, bool) {
	v, ok := r.young[hash]
	if !ok {
		v, ok = r.old[hash]
	}
	return v, ok
}

// set remembers a value for a span.
func (r *recent[V]) set(ref spanRef, v V) {
	r.keep(maphash.Comparable(r.seed, ref), v)
}

// swap sets a value and returns what get would have.
func (r *recent[V]) swap(ref spanRef, v V) (V, bool) {
	hash := maphash.Comparable(r.seed, ref)
	had, ok := r.of(hash)
	r.keep(hash, v)
	return had, ok
}

func (r *recent[V]) keep(hash uint64, v V) {
	r.young[hash] = v
	if len(r.young) >= r.size {
		clear(r.old)
		r.young, r.old = r.old, r.young
	}
}
