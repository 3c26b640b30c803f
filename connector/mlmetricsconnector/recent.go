package mlmetricsconnector

import (
	"hash/maphash"
	"math/bits"
)

const (
	// ways is how many spans share a place: a line of the processor's cache.
	ways = 8
	// mask has the bits of an entry that are the value; the others are the
	// span's hash.
	mask = 0xff
)

// recent remembers a small number, not zero, for each of the spans that were
// set most recently. A span has one place by its hash, with room for eight, of
// which the one that was set first gives way: there are twice as many as it
// has to remember, so that nearly all of those are there. It never grows, and a
// look at it is one look at the memory. That two spans have the same 56 bits of
// a hash whose seed nobody knows is as good as impossible. It is not safe for
// concurrent use.
type recent struct {
	places [][ways]uint64
	seed   maphash.Seed
}

// newRecent returns a recent for at least so many spans.
func newRecent(spans int) *recent {
	places := 1 << bits.Len(uint(max(2*spans/ways, 1)-1)) // #nosec G115 -- not negative
	return &recent{places: make([][ways]uint64, places), seed: maphash.MakeSeed()}
}

// place returns where a span is remembered, and its hash.
func (r *recent) place(ref *spanRef) (*[ways]uint64, uint64) {
	var raw [len(ref.trace) + len(ref.span)]byte
	copy(raw[:], ref.trace[:])
	copy(raw[len(ref.trace):], ref.span[:])
	hash := maphash.Bytes(r.seed, raw[:])
	return &r.places[hash>>8&uint64(len(r.places)-1)], hash &^ mask
}

// get returns what was set for a span, and zero where nothing was.
func (r *recent) get(ref spanRef) uint8 {
	place, hash := r.place(&ref)
	for _, entry := range place {
		if entry&^mask == hash {
			return uint8(entry & mask)
		}
	}
	return 0
}

// add sets the bits of value for a span, in addition to those that are set,
// and returns what get would have. The span is the newest then.
func (r *recent) add(ref spanRef, value uint8) (had uint8) {
	place, hash := r.place(&ref)
	last := ways - 1
	for i, entry := range place {
		if entry&^mask == hash {
			had, last = uint8(entry&mask), i
			break
		}
	}
	copy(place[1:last+1], place[:last])
	place[0] = hash | uint64(had|value)
	return had
}
