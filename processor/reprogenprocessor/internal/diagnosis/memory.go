// Package diagnosis reads the numbers that frameworks put into the messages
// of failures which no call reproduces alone: memory that ran out, and
// collective operations that did not end.
package diagnosis

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Memory has the numbers of a message about memory that ran out, in bytes.
type Memory struct {
	// Device is where the memory is: "cuda:0", "cpu", or "" where unsaid.
	Device string `json:"device,omitempty"`
	// Requested is what the last allocation asked for.
	Requested jsontree.Known `json:"requested_bytes,omitzero"`
	// Total and Free are the device's, at that time.
	Total jsontree.Known `json:"total_bytes,omitzero"`
	Free  jsontree.Known `json:"free_bytes,omitzero"`
	// Process is what the process had of the device, beside the framework too.
	Process jsontree.Known `json:"process_bytes,omitzero"`
	// Allocated is what the framework's tensors had.
	Allocated jsontree.Known `json:"allocated_bytes,omitzero"`
	// Unused is what the framework's allocator had reserved and no tensor used.
	Unused jsontree.Known `json:"reserved_unused_bytes,omitzero"`
	// Others is what other processes had, as far as they are listed.
	Others jsontree.Known `json:"other_processes_bytes,omitzero"`
}

const (
	size   = `([0-9]+(?:\.[0-9]+)?) ?(bytes|[KMGT]?i?B)`
	device = `(?:GPU|XPU) ([0-9]+)`
)

// PyTorch's messages: since 2.1, and before. 2.1 itself misspells capacity.
var (
	requested  = regexp.MustCompile(`(?i)(?:tried to allocate|trying to allocate|failed to allocate) ` + size)
	deviceOf   = regexp.MustCompile(device + `(?: has a total capac|;)`)
	totalOf    = regexp.MustCompile(`total capaci?ty of ` + size + `|` + size + ` total capacity`)
	freeOf     = regexp.MustCompile(`of which ` + size + ` is free|` + size + ` free`)
	processOf  = regexp.MustCompile(`this process has ` + size + ` memory in use`)
	othersOf   = regexp.MustCompile(`Process [0-9]+ has ` + size + ` memory in use`)
	allocated  = regexp.MustCompile(size + ` is allocated by PyTorch|` + size + ` already allocated`)
	unused     = regexp.MustCompile(size + ` is reserved by PyTorch but unallocated`)
	reserved   = regexp.MustCompile(size + ` reserved in total by PyTorch`)
	outOfWords = regexp.MustCompile(`(?i)out of memory|can't allocate memory|not enough memory|RESOURCE_EXHAUSTED`)
)

// OutOfMemory reads a message of PyTorch (CUDA, ROCm, XPU and its CPU
// allocator) or of XLA, and reports whether it is one about memory that ran
// out.
func OutOfMemory(message string) (Memory, bool) {
	if !outOfWords.MatchString(message) {
		return Memory{}, false
	}
	m := Memory{
		Requested: find(requested, message),
		Total:     find(totalOf, message),
		Free:      find(freeOf, message),
		Process:   find(processOf, message),
		Allocated: find(allocated, message),
		Unused:    find(unused, message),
		Others:    -1,
	}
	if m.Unused < 0 && m.Allocated >= 0 {
		if all := find(reserved, message); all >= m.Allocated {
			m.Unused = all - m.Allocated
		}
	}
	for _, found := range othersOf.FindAllStringSubmatch(message, 64) {
		m.Others = max(m.Others, 0) + bytesOf(found[1:])
	}
	switch found := deviceOf.FindStringSubmatch(message); {
	case found != nil:
		m.Device = "cuda:" + found[1]
	case strings.Contains(message, "CPUAllocator"):
		m.Device = "cpu"
	}
	return m, true
}

// Reading returns what the numbers mean, in words, or "".
func (m Memory) Reading() string {
	switch {
	case m.Requested < 0:
		return ""
	case m.Total >= 0 && m.Requested > m.Total:
		return "The allocation alone is larger than the device: smaller shapes or another device are needed."
	case m.Unused >= m.Requested && m.Free >= 0:
		return "The allocator had enough reserved, but not in one piece: the memory is fragmented. " +
			"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may help."
	case m.Others >= m.Requested:
		return "Other processes on the device had more than was missing."
	case m.Free >= 0:
		return "The device was full with what the process itself had allocated."
	}
	return ""
}

// find returns the first size that the pattern finds, in bytes, or -1.
func find(pattern *regexp.Regexp, text string) jsontree.Known {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	for i := 1; i+1 < len(found); i += 2 {
		if found[i] != "" {
			return bytesOf(found[i : i+2])
		}
	}
	return -1
}

// bytesOf returns number and unit as bytes. PyTorch writes GiB, and counts in
// powers of 1024 also where it wrote GB.
func bytesOf(found []string) jsontree.Known {
	n, err := strconv.ParseFloat(found[0], 64)
	if err != nil {
		return -1
	}
	if unit := strings.IndexByte("KMGT", found[1][0]); unit >= 0 {
		n *= math.Pow(1024, float64(unit+1))
	}
	if n >= math.MaxInt64 {
		return -1
	}
	return jsontree.Known(math.Round(n))
}
