package nesting

import (
	"math/bits"
	"slices"
)

const (
	// ways is the number of spans in a set, which fills one cache line.
	ways = 8
	// mask has the bits of an entry that are the value; the others are the
	// span's key.
	mask = 0xff
)

// Recent remembers a small, non-zero number for each of the most recently set
// spans. A span's key selects a set of eight entries, of which the one that
// was set first is replaced. There are twice as many entries as spans to
// remember, so nearly all of those are found. The size is fixed, and a lookup
// reads one cache line: it takes a fifth or less of what lastused.Map takes (decision 51).
// Collisions need equal 56 bits of a key. It is not safe for concurrent use.
type Recent struct {
	places [][ways]uint64
	// ahead keeps the compiler from omitting readAhead.
	ahead uint64
	// newest has the entries that Add has set last, a quarter as many as spans to remember.
	newest []uint64
	added  int
}

// NewRecent returns a Recent for at least spans spans.
func NewRecent(spans int) *Recent {
	places := 1 << bits.Len(uint(max(2*spans/ways, 1)-1)) // #nosec G115 -- not negative
	return &Recent{places: make([][ways]uint64, places), newest: make([]uint64, places)}
}

// set returns the set of a span, and the key as entries have it.
func (r *Recent) set(of Key) (*[ways]uint64, uint64) {
	return &r.places[uint64(of)>>8&uint64(len(r.places)-1)], uint64(of) &^ mask
}

// get returns the value of a span, zero if it has none.
func (r *Recent) get(of Key) uint8 {
	place, key := r.set(of)
	for _, entry := range place {
		if entry&^mask == key {
			return uint8(entry & mask)
		}
	}
	return 0
}

// ReadAhead brings what is known of a span into the processor's caches. Calls for
// several spans, one after the other, wait for memory at the same time; get and add
// would each wait for it alone.
func (r *Recent) ReadAhead(of Key) {
	place, _ := r.set(of)
	r.ahead |= place[0]
}

// Add sets the bits of value for a span, in addition to those already set, and
// returns the previous value. The span becomes the most recent one.
func (r *Recent) Add(of Key, value uint8) (had uint8) {
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
	r.newest[r.added] = place[0]
	r.added = (r.added + 1) % len(r.newest)
	return had
}

// Entries returns the newest entries, or all, in the order in which Restore adds them.
func (r *Recent) Entries(all bool) (entries []uint64) {
	if !all {
		entries = slices.Concat(r.newest[r.added:], r.newest[:r.added])
	}
	for way := ways - 1; all && way >= 0; way-- {
		for i := range r.places {
			entries = append(entries, r.places[i][way])
		}
	}
	return slices.DeleteFunc(entries, func(entry uint64) bool { return entry == 0 })
}

// Restore adds entries.
func (r *Recent) Restore(entries []uint64) {
	for _, entry := range entries {
		r.Add(Key(entry), uint8(entry&mask))
	}
}
