package bound

import (
	"hash/maphash"
	"math/bits"
)

// ways is how many spans have the same place in a Memory. Their hashes fill half a
// cache line.
const ways = 4

// Ref identifies a span: the id of its trace, then its own.
type Ref [24]byte

// Memory has the times of spans until the span above them arrives, because children
// usually arrive first, often in an earlier request. Its size is fixed: beyond it,
// those that came first are forgotten. It is not safe for concurrent use.
type Memory struct {
	// hashes are those of the spans at each place, the newest first, or 0, and
	// times what is below them.
	hashes [][ways]uint64
	times  [][ways]Times
	seed   maphash.Seed
}

// NewMemory returns a Memory for about so many spans.
func NewMemory(spans int) *Memory {
	places := 1 << bits.Len(uint(max(spans/ways, 1)-1)) // #nosec G115 -- not negative
	return &Memory{hashes: make([][ways]uint64, places), times: make([][ways]Times, places), seed: maphash.MakeSeed()}
}

func (m *Memory) place(above *Ref) (place int, hash uint64) {
	hash = max(maphash.Bytes(m.seed, above[:]), 1)
	return int(hash & uint64(len(m.hashes)-1)), hash // #nosec G115 -- an index
}

// Add adds times below a span.
func (m *Memory) Add(above *Ref, below *Times) {
	place, hash := m.place(above)
	hashes, times := &m.hashes[place], &m.times[place]
	for i := range hashes {
		if hashes[i] == hash {
			times[i].Add(below)
			return
		}
	}
	copy(hashes[1:], hashes[:ways-1])
	copy(times[1:], times[:ways-1])
	hashes[0], times[0] = hash, *below
}

// Take adds the times below a span to times, and forgets them.
func (m *Memory) Take(above *Ref, times *Times) {
	place, hash := m.place(above)
	hashes := &m.hashes[place]
	for i := range hashes {
		if hashes[i] == hash {
			times.Add(&m.times[place][i])
			copy(hashes[i:], hashes[i+1:])
			copy(m.times[place][i:], m.times[place][i+1:])
			hashes[ways-1] = 0
			return
		}
	}
}
