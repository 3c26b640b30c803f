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

// Collective has the numbers of PyTorch's watchdog about a collective operation
// that did not end.
type Collective struct {
	// Backend is the library, such as "NCCL".
	Backend string `json:"backend"`
	// Operation is what did not end, such as "ALLREDUCE".
	Operation string `json:"operation"`
	// Sequence numbers the operations of a process group. The ranks that wait
	// have the same one; a rank with a lower one is behind.
	Sequence jsontree.Known `json:"sequence,omitzero"`
	// ElementsIn and ElementsOut are the operation's sizes. Ranks that differ
	// in them run different code.
	ElementsIn  jsontree.Known `json:"elements_in,omitzero"`
	ElementsOut jsontree.Known `json:"elements_out,omitzero"`
	// TimeoutMillis is the limit, and RanMillis how long it ran.
	TimeoutMillis jsontree.Known `json:"timeout_ms,omitzero"`
	RanMillis     jsontree.Known `json:"ran_ms,omitzero"`
}

var (
	workOf        = regexp.MustCompile(`Work([A-Z]+)\(`)
	operationOf   = regexp.MustCompile(`OpType=([A-Z_a-z0-9]{1,40})`)
	sequenceOf    = regexp.MustCompile(`SeqNum=([0-9]{1,18})\b`)
	elementsInOf  = regexp.MustCompile(`NumelIn=([0-9]{1,18})\b`)
	elementsOutOf = regexp.MustCompile(`NumelOut=([0-9]{1,18})\b`)
	timeoutOf     = regexp.MustCompile(`Timeout\(ms\)=([0-9]{1,18})\b`)
	ranOf         = regexp.MustCompile(`ran for ([0-9]{1,18}) milliseconds`)
)

// HungCollective reads a message of PyTorch's watchdog, and reports whether it
// is one.
func HungCollective(message string) (Collective, bool) {
	operation := operationOf.FindStringSubmatch(message)
	if operation == nil {
		return Collective{}, false
	}
	c := Collective{
		Operation:     operation[1],
		Sequence:      count(sequenceOf, message),
		ElementsIn:    count(elementsInOf, message),
		ElementsOut:   count(elementsOutOf, message),
		TimeoutMillis: count(timeoutOf, message),
		RanMillis:     count(ranOf, message),
	}
	if work := workOf.FindStringSubmatch(message); work != nil {
		c.Backend = work[1]
	}
	return c, true
}

func count(pattern *regexp.Regexp, text string) jsontree.Known {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return -1
	}
	return jsontree.Known(n)
}
