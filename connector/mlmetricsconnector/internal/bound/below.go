package bound

import (
	"hash/maphash"
	"math/bits"
)

// ways is how many spans have the same place in a Memory.
const ways = 4

// Ref identifies a span: the id of its trace, then its own.
type Ref [24]byte

// Memory has the times of spans until the span above them arrives, because children
// usually arrive first, often in an earlier request. Its size is fixed: beyond it,
// those that came first are forgotten. It is not safe for concurrent use.
type Memory struct {
	places [][ways]entry
	seed   maphash.Seed
}

// entry is what is below a span, or nothing if hash is 0.
type entry struct {
	hash  uint64
	times Times
}

// NewMemory returns a Memory for about so many spans.
func NewMemory(spans int) *Memory {
	return &Memory{places: make([][ways]entry, 1<<bits.Len(uint(max(spans/ways, 1)-1))), seed: maphash.MakeSeed()} // #nosec G115 -- not negative
}

func (m *Memory) find(above *Ref) (place *[ways]entry, hash uint64) {
	hash = max(maphash.Bytes(m.seed, above[:]), 1)
	return &m.places[hash&uint64(len(m.places)-1)], hash
}

// Add adds times below a span.
func (m *Memory) Add(above *Ref, times *Times) {
	place, hash := m.find(above)
	at := ways - 1
	for i := range place {
		if place[i].hash == hash || place[i].hash == 0 {
			at = i
			break
		}
	}
	if place[at].hash != hash {
		copy(place[1:at+1], place[:at])
		place[0], at = entry{hash: hash}, 0
	}
	place[at].times.Add(times)
}

// Take returns the times below a span and forgets them.
func (m *Memory) Take(above *Ref) (times Times) {
	place, hash := m.find(above)
	for i := range place {
		if place[i].hash == hash {
			times = place[i].times
			copy(place[i:], place[i+1:])
			place[ways-1] = entry{}
			break
		}
	}
	return times
}
