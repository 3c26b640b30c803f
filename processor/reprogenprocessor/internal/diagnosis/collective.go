package diagnosis

import (
	"regexp"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

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
