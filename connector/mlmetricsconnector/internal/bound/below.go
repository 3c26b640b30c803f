package bound

import "math/bits"

// ways is how many spans have the same place in a Memory. Their keys fill half a
// cache line.
const ways = 4

// Memory has the times of spans until the span above them arrives, because children
// usually arrive first, often in an earlier request. Its size is fixed: beyond it,
// those that came first are forgotten. It takes a quarter of the time of a lastused.Map
// (decision 51). It is not safe for concurrent use.
type Memory struct {
	// keys are those of the spans at each place, the newest first, or 0, and
	// times what is below them.
	keys  [][ways]uint64
	times [][ways]Times
}

// NewMemory returns a Memory for about so many spans.
func NewMemory(spans int) *Memory {
	places := 1 << bits.Len(uint(max(spans/ways, 1)-1)) // #nosec G115 -- not negative
	return &Memory{keys: make([][ways]uint64, places), times: make([][ways]Times, places)}
}

func (m *Memory) place(above uint64) int {
	return int(above & uint64(len(m.keys)-1)) // #nosec G115 -- an index
}

// Add adds times below a span. Its key is a hash of its ids, and not zero.
func (m *Memory) Add(above uint64, below *Times) {
	place := m.place(above)
	keys, times := &m.keys[place], &m.times[place]
	for i := range keys {
		if keys[i] == above {
			times[i].Add(below)
			return
		}
	}
	copy(keys[1:], keys[:ways-1])
	copy(times[1:], times[:ways-1])
	keys[0], times[0] = above, *below
}

// Take adds the times below a span to times, and forgets them.
func (m *Memory) Take(above uint64, times *Times) {
	place := m.place(above)
	keys := &m.keys[place]
	for i := range keys {
		if keys[i] == above {
			times.Add(&m.times[place][i])
			copy(keys[i:], keys[i+1:])
			copy(m.times[place][i:], m.times[place][i+1:])
			keys[ways-1] = 0
			return
		}
	}
}
