package gpujoin

// The parts of a GPU's memory, in the order of memoryParts.
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

// maxGPUMemory is more than any GPU has. No sum of a few overflows.
const maxGPUMemory = 1 << 60

// memorySizes are sizes in bytes that a client and the gpu receiver report of
// one process and its GPU.
type memorySizes struct {
	// limit is the GPU's memory, used the part of it in use, and kept what the
	// driver reserves besides.
	limit, used, kept int64
	// process is the memory of the client's process, and others that of the
	// other processes.
	process, others int64
	// reserved is the part of process that the client's allocator holds, if the
	// client reports it, and allocated the part of that in use.
	reserved  count
	allocated int64
}

// has reports whether the sizes determine a part. What an allocator caches
// cannot be told from the rest of its process if the client does not report
// what it reserved.
func (s *memorySizes) has(part int) bool { return part != partCached || s.reserved.ok }

// breakDown divides a GPU's memory into parts that add up to its limit. The
// driver's part is what it reserves and what is in use by no process. It
// returns false for sizes that contradict each other, as readings of different
// times may: no part is ever negative.
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
	unowned := s.used - s.process - s.others
	for _, part := range append(parts[:], unowned) {
		if part < 0 {
			return [partCount]int64{}, false
		}
	}
	parts[partDriver] += unowned
	return parts, true
}
