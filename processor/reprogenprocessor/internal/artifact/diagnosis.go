package artifact

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// diagnosisOf returns what a message says about memory that ran out, or about
// a collective operation that did not end, or nil: failures which no call reproduces
// alone. Only numbers and names of a closed form are taken from the message.
func diagnosisOf(e failure.Error) jsontree.Object {
	switch {
	case e.Findings != nil:
		return e.Findings
	case outOfWords.MatchString(e.Message):
		return outOfMemory(e.Message)
	case operationOf.MatchString(e.Message):
		return hungCollective(e.Message)
	}
	return nil
}

const size = `([0-9]+(?:\.[0-9]+)?) ?(bytes|[KMGT]?i?B)`

// The messages of PyTorch (CUDA, ROCm, XPU and its CPU allocator; since 2.1, and
// before; 2.1 itself misspells capacity) and of XLA.
var (
	outOfWords = regexp.MustCompile(`(?i)out of memory|can't allocate memory|not enough memory|RESOURCE_EXHAUSTED`)
	deviceOf   = regexp.MustCompile(`(?:GPU|XPU) ([0-9]+)(?: has a total capac|;)`)
	requested  = regexp.MustCompile(`(?i)(?:tried to allocate|trying to allocate|failed to allocate) ` + size)
	totalOf    = regexp.MustCompile(`total capaci?ty of ` + size + `|` + size + ` total capacity`)
	freeOf     = regexp.MustCompile(`of which ` + size + ` is free|` + size + ` free`)
	processOf  = regexp.MustCompile(`this process has ` + size + ` memory in use`)
	othersOf   = regexp.MustCompile(`Process [0-9]+ has ` + size + ` memory in use`)
	allocated  = regexp.MustCompile(size + ` is allocated by PyTorch|` + size + ` already allocated`)
	unusedOf   = regexp.MustCompile(size + ` is reserved by PyTorch but unallocated`)
	reserved   = regexp.MustCompile(size + ` reserved in total by PyTorch`)
)

// outOfMemory returns the numbers of a message about memory that ran out, in bytes: what
// the last allocation asked for; what the device had, was free, had the process, also
// beside the framework, had the framework's tensors, and had its allocator reserved for
// nothing; and what other processes had, as far as they are listed.
func outOfMemory(message string) jsontree.Object {
	asked, total, free := bytesIn(requested, message), bytesIn(totalOf, message), bytesIn(freeOf, message)
	tensors, unused, others := bytesIn(allocated, message), bytesIn(unusedOf, message), jsontree.Known(-1)
	if all := bytesIn(reserved, message); unused < 0 && tensors >= 0 && all >= tensors {
		unused = all - tensors
	}
	for _, found := range othersOf.FindAllString(message, 64) {
		others = max(others, 0) + bytesIn(othersOf, found)
	}
	device := ""
	if found := deviceOf.FindStringSubmatch(message); found != nil {
		device = "cuda:" + found[1]
	} else if strings.Contains(message, "CPUAllocator") {
		device = "cpu"
	}
	reading := ""
	switch {
	case asked < 0:
	case total >= 0 && asked > total:
		reading = "The allocation alone is larger than the device: smaller shapes or another device are needed."
	case unused >= asked && free >= 0:
		reading = "The allocator had enough reserved, but not in one piece: the memory is fragmented. " +
			"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may help."
	case others >= asked:
		reading = "Other processes on the device had more than was missing."
	case free >= 0:
		reading = "The device was full with what the process itself had allocated."
	}
	return jsontree.OfKnown("about", "memory", "device", device, "requested_bytes", asked, "total_bytes", total, "free_bytes", free,
		"process_bytes", bytesIn(processOf, message), "allocated_bytes", tensors, "reserved_unused_bytes", unused,
		"other_processes_bytes", others, "reading", reading)
}

// bytesIn returns the first size that a pattern finds, in bytes, or -1. PyTorch writes
// GiB, and counts in powers of 1024 also where it wrote GB.
func bytesIn(pattern *regexp.Regexp, text string) jsontree.Known {
	found := pattern.FindStringSubmatch(text)
	for i := 1; i+1 < len(found); i += 2 {
		n, err := strconv.ParseFloat(found[i], 64)
		if found[i] == "" || err != nil {
			continue
		}
		if unit := strings.IndexByte("KMGT", found[i+1][0]); unit >= 0 {
			n *= math.Pow(1024, float64(unit+1))
		}
		if n < math.MaxInt64 {
			return jsontree.Known(math.Round(n))
		}
	}
	return -1
}

var (
	operationOf = regexp.MustCompile(`OpType=([A-Z_a-z0-9]{1,40})`)
	workOf      = regexp.MustCompile(`Work([A-Z]+)\(`)
	// numbersOf are those of an operation. The ranks that wait have the same sequence;
	// one with a lower one is behind.
	numbersOf = [...]struct {
		name string
		form *regexp.Regexp
	}{
		{"sequence", regexp.MustCompile(`SeqNum=([0-9]{1,18})\b`)},
		{"elements_in", regexp.MustCompile(`NumelIn=([0-9]{1,18})\b`)},
		{"elements_out", regexp.MustCompile(`NumelOut=([0-9]{1,18})\b`)},
		{"timeout_ms", regexp.MustCompile(`Timeout\(ms\)=([0-9]{1,18})\b`)},
		{"ran_ms", regexp.MustCompile(`ran for ([0-9]{1,18}) milliseconds`)},
	}
)

// hungCollective returns the numbers of PyTorch's watchdog about a collective operation
// that did not end.
func hungCollective(message string) jsontree.Object {
	first := func(form *regexp.Regexp) string { return append(form.FindStringSubmatch(message), "", "")[1] }
	out := jsontree.OfKnown("about", "collective", "backend", first(workOf), "operation", first(operationOf))
	for _, number := range numbersOf {
		if n, err := strconv.ParseInt(first(number.form), 10, 64); err == nil {
			out = append(out, jsontree.Member{Key: number.name, Value: jsontree.Int(n)})
		}
	}
	return append(out, jsontree.Member{Key: "reading", Value: "Compare sequence and sizes with those of the other ranks: " +
		"a rank with a lower sequence is behind, and ranks that differ in the sizes run different code."})
}
