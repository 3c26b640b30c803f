package mlmetricsconnector

import "math/bits"

const (
	// ways is the number of spans in a set, which fills one cache line.
	ways = 8
	// mask has the bits of an entry that are the value; the others are the
	// span's key.
	mask = 0xff
)

// recent remembers a small, non-zero number for each of the most recently set
// spans. A span's key selects a set of eight entries, of which the one that
// was set first is replaced. There are twice as many entries as spans to
// remember, so nearly all of those are found. The size is fixed, and a lookup
// reads one cache line. Collisions need equal 56 bits of a key. It is not safe for
// concurrent use.
type recent struct {
	places [][ways]uint64
	// ahead keeps the compiler from omitting readAhead.
	ahead uint64
}

// newRecent returns a recent for at least spans spans.
func newRecent(spans int) *recent {
	places := 1 << bits.Len(uint(max(2*spans/ways, 1)-1)) // #nosec G115 -- not negative
	return &recent{places: make([][ways]uint64, places)}
}

// set returns the set of a span, and the key as entries have it.
func (r *recent) set(of spanKey) (*[ways]uint64, uint64) {
	return &r.places[uint64(of)>>8&uint64(len(r.places)-1)], uint64(of) &^ mask
}

// get returns the value of a span, zero if it has none.
func (r *recent) get(of spanKey) uint8 {
	place, key := r.set(of)
	for _, entry := range place {
		if entry&^mask == key {
			return uint8(entry & mask)
		}
	}
	return 0
}

// readAhead brings what is known of a span into the processor's caches. Calls for
// several spans, one after the other, wait for memory at the same time; get and add
// would each wait for it alone.
func (r *recent) readAhead(of spanKey) {
	place, _ := r.set(of)
	r.ahead |= place[0]
}

// add sets the bits of value for a span, in addition to those already set, and
// returns the previous value. The span becomes the most recent one.
func (r *recent) add(of spanKey, value uint8) (had uint8) {
	place, key := r.set(of)
	last := ways - 1
	for i, entry := range place {
		if entry&^mask == key {
			had, last = uint8(entry&mask), i
			break
		}
	}
	copy(place[1:last+1], place[:last])
	place[0] = key | uint64(had|value)
	return had
}
