package mlenrichprocessor

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Two instrumentations of one client, and an agent above the calls that it
// makes, each report the same tokens on a span of their own. Only the lowest of
// such spans counts: those above it are marked with ml.usage.counted=false. A
// service that calls another one counts for itself: both know what they used.

// wrappers are the spans that add up what the calls below them used, by the
// conventions' operation or by their names. They are marked without waiting for
// a call, which may be in another batch.
var (
	wrapperOperations = []string{mlattr.OperationInvokeAgent, mlattr.OperationInvokeWorkflow}
	wrapperNames      = []string{"invoke_agent", "invoke_workflow", "agent_step", "ai.generateText", "ai.streamText"}
)

// wraps says whether a span is such a wrapper. A name may go on after a space,
// as in "invoke_agent planner".
func wraps(name, operation string) bool {
	if slices.Contains(wrapperOperations, operation) {
		return true
	}
	for _, known := range wrapperNames {
		if rest, ok := strings.CutPrefix(name, known); ok && (rest == "" || rest[0] == ' ') {
			return true
		}
	}
	return false
}

// usage is what a span says about tokens.
type usage struct {
	// reported is true where it says that some were used, also for those
	// above it. An estimate is what a role counted of its own request:
	// TaskWeaver's planner has the compressor's requests below its own.
	reported bool
	// countable is true where the span would be counted as a request or its
	// tokens would, and has no mark about it yet.
	countable bool
	// wrapper is true where that is for the calls below it to say.
	wrapper bool
}

var slotUsageCounted = mlattr.SlotOf(mlattr.UsageCounted)

func usageOf(f *mlattr.Facts, name string) usage {
	input, hasInput := f.IntAt(slotInput)
	output, hasOutput := f.IntAt(slotOutput)
	operation, estimated := f.TextAt(slotGenAIOperation), f.At(slotEstimated)
	if !hasInput && !hasOutput && operation == "" {
		return usage{}
	}
	return usage{
		reported:  (input > 0 || output > 0) && (estimated == nil || !estimated.Bool),
		countable: (hasInput || hasOutput || mlattr.AsksModel(operation)) && f.At(slotUsageCounted) == nil,
		wrapper:   wraps(name, operation),
	}
}

// covering is a span that is not in the batch and above one that used tokens,
// and the service of that one as store.serviceOf has it.
type covering struct {
	span    spanKey
	service uint64
}

// findUsage finds the spans that used tokens, and those of which it is known
// from earlier batches that one below them did. Their traces are active.
func (r *resolution) findUsage(ix index) {
	for i := range r.nodes {
		if n := &r.nodes[i]; n.uses && n.traceAt != nowhere {
			r.users = append(r.users, int32(i))
		}
	}
	r.users = ix.covered(r.nodes, r.users)
	for _, at := range r.users {
		r.traces[r.nodes[at].traceAt].used = true
	}
}

// coverUsage marks the ancestors of what findUsage found, up to the first of
// another service, and remembers the first that is not in the batch.
func (r *resolution) coverUsage(ix index) {
	for _, user := range r.users {
		n := &r.nodes[user]
		for n.parent != ([8]byte{}) && n.parent != n.id {
			if n.above == nowhere {
				r.covering = append(r.covering, covering{spanKey{n.trace, n.parent}, n.service})
				break
			}
			parent := &r.nodes[n.above]
			if parent.covered || parent.service != n.service {
				// What is above a covered one has been seen to. This ends a
				// cycle too, which only bad data has.
				break
			}
			parent.covered = true
			n = parent
		}
	}
	if len(r.covering) > 0 {
		ix.cover(r.covering)
	}
}
