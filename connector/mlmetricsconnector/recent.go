package mlmetricsconnector

import (
	"hash/maphash"
	"math/bits"
)

const (
	// ways is the number of spans in a set, which fills one cache line.
	ways = 8
	// mask has the bits of an entry that are the value; the others are the
	// span's hash.
	mask = 0xff
)

// recent remembers a small, non-zero number for each of the most recently set
// spans. A span's hash selects a set of eight entries, of which the one that
// was set first is replaced. There are twice as many entries as spans to
// remember, so nearly all of those are found. The size is fixed, and a lookup
// reads one cache line. Collisions need equal 56 bits of a hash with a random
// seed. It is not safe for concurrent use.
type recent struct {
	places [][ways]uint64
	seed   maphash.Seed
}

// newRecent returns a recent for at least spans spans.
func newRecent(spans int) *recent {
	places := 1 << bits.Len(uint(max(2*spans/ways, 1)-1)) // #nosec G115 -- not negative
	return &recent{places: make([][ways]uint64, places), seed: maphash.MakeSeed()}
}

// set returns the set of a span, and its hash.
func (r *recent) set(ref *spanRef) (*[ways]uint64, uint64) {
	var raw [len(ref.trace) + len(ref.span)]byte
	copy(raw[:], ref.trace[:])
	copy(raw[len(ref.trace):], ref.span[:])
	hash := maphash.Bytes(r.seed, raw[:])
	return &r.places[hash>>8&uint64(len(r.places)-1)], hash &^ mask
}

// get returns the value of a span, zero if it has none.
func (r *recent) get(ref spanRef) uint8 {
	place, hash := r.set(&ref)
	for _, entry := range place {
		if entry&^mask == hash {
			return uint8(entry & mask)
		}
	}
	return 0
}

// add sets the bits of value for a span, in addition to those already set, and
// returns the previous value. The span becomes the most recent one.
func (r *recent) add(ref spanRef, value uint8) (had uint8) {
	place, hash := r.set(&ref)
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
