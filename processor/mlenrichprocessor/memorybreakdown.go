package mlenrichprocessor

// The parts that a GPU's memory is broken down into, in the order of memoryParts.
const (
	partAllocated = iota
	partCached
	partProcessOther
	partOtherProcesses
	partDriver
	partFree
	partCount
)

// memoryParts are the values of ml.gpu.memory.kind.
var memoryParts = [partCount]string{"allocated", "cached", "process_other", "other_processes", "driver", "free"}

// maxGPUMemory is more than any GPU has, and no sum of a few overflows.
const maxGPUMemory = 1 << 60

// memorySizes are sizes in bytes that a client and the gpu receiver report of
// one process and its GPU.
type memorySizes struct {
	// limit is what the GPU has, used what is in use of it, and kept what the
	// driver keeps for itself beside that.
	limit, used, kept int64
	// process is what the client's process has, and others what the others have.
	process, others int64
	// reserved is what the client's allocator has of its process's, where the
	// client says so, and allocated what it has given out of that.
	reserved  count
	allocated int64
}

// has says whether there is a part of such sizes. What an allocator keeps for
// later cannot be told from the rest of its process where the client does not
// say what it has.
func (s *memorySizes) has(part int) bool { return part != partCached || s.reserved.ok }

// breakDown divides a GPU's memory into parts that add up to its limit. The
// driver's part is what it keeps and what is in use by no process. It returns
// false for sizes that do not fit together, as readings of different times may
// not: no part is ever negative.
func (s *memorySizes) breakDown() (parts [partCount]int64, ok bool) {
	reserved := s.allocated
	if s.reserved.ok {
		reserved = s.reserved.n
	}
	for _, size := range [...]int64{s.used, s.kept, s.process, s.others, reserved, s.allocated} {
		// No sum below can overflow then.
		if size < 0 || size > s.limit || s.limit > maxGPUMemory {
			return parts, false
		}
	}
	parts = [partCount]int64{
		partAllocated:      s.allocated,
		partCached:         reserved - s.allocated,
		partProcessOther:   s.process - reserved,
		partOtherProcesses: s.others,
		partDriver:         s.kept,
		partFree:           s.limit - s.used - s.kept,
	}
	ofNobody := s.used - s.process - s.others
	for _, part := range append(parts[:], ofNobody) {
		if part < 0 {
			return [partCount]int64{}, false
		}
	}
	parts[partDriver] += ofNobody
	return parts, true
}
