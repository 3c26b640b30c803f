package gpujoin

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// memoryAge is how long a client's sizes are valid. Clients report them once a
// minute.
const memoryAge = 2 * time.Minute

// allocatorSizes are what a client reports of its GPU memory allocator, in
// bytes.
type allocatorSizes struct {
	// reserved is missing if the client reports only what was allocated.
	reserved  count
	allocated int64
	at        time.Time
	ok        bool
}

// Allocator collects what the metrics of a resource report about its GPU memory
// allocator. The zero value is ready for use.
type Allocator struct {
	// reserved and allocated are usable if they are of one point: several
	// points are of several GPUs.
	reserved, allocated pointSize
}

type pointSize struct {
	count
	points int
}

// Read takes in a metric of a client's GPU memory. The metric's meaning says
// whether it is about reserved or allocated memory, or else the attribute kind
// of its points.
func (a *Allocator) Read(m pmetric.Metric, meaning *vocabulary.Meaning) {
	for _, p := range mlattr.NumberPoints(m).All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		switch cmp.Or(meaning.Part, mlattr.FirstText(p.Attributes(), "kind")) {
		case mlattr.PartReserved:
			a.reserved.read(p, meaning.Factor)
		case mlattr.PartAllocated:
			a.allocated.read(p, meaning.Factor)
		}
	}
}

func (s *pointSize) read(p pmetric.NumberDataPoint, factor float64) {
	s.count = bytesOf(p, factor)
	s.points++
}

// sizes returns what was read, if it is complete.
func (a *Allocator) sizes(now time.Time) allocatorSizes {
	if a.reserved.points > 1 || a.allocated.points != 1 || a.reserved.points == 1 && !a.reserved.ok || !a.allocated.ok {
		return allocatorSizes{}
	}
	return allocatorSizes{reserved: a.reserved.count, allocated: a.allocated.n, at: now, ok: true}
}

// bytesOf returns a point's value, times factor, as a size.
func bytesOf(p pmetric.NumberDataPoint, factor float64) count {
	number, ok := mlattr.Number(p)
	size := math.Round(number * factor)
	if !ok || !(size >= 0) || size >= math.MaxInt64 {
		return count{}
	}
	return count{n: int64(size), ok: true}
}

// memoryParts are the values of ml.gpu.memory.kind.
var memoryParts = [...]string{"allocated", partCached, "process_other", "other_processes", "driver", "free"}

// partCached cannot be told from the rest of a process if its client does not report what its
// allocator reserved.
const partCached = "cached"

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

// breakDown divides a GPU's memory into parts that add up to its limit. The
// driver's part is what it reserves and what is in use by no process. It
// returns false for sizes that contradict each other, as readings of different
// times may: no part is ever negative.
func (s *memorySizes) breakDown() (parts [len(memoryParts)]int64, ok bool) {
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
	unowned := s.used - s.process - s.others
	parts = [...]int64{s.allocated, reserved - s.allocated, s.process - reserved, s.others, s.kept + unowned, s.limit - s.used - s.kept}
	if unowned < 0 || slices.Min(parts[:]) < 0 {
		return [len(memoryParts)]int64{}, false
	}
	return parts, true
}
