package mlenrichprocessor

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Two instrumentations of one client, and an agent above the calls that it
// makes, each report the same tokens on a span of their own. Only the lowest of
// such spans counts: those above it are marked with ml.usage.counted=false. A
// service that calls another one counts for itself: both know what they used,
// and ml.side tells the two apart. An answer that a service reports twice, as a
// client that asks again for what it has already been given, counts once.

// wrappers are the spans that add up what the calls below them used, by the
// conventions' operation or by their names. They are marked without waiting for
// a call, which may be in another batch.
var (
	wrapperOperations = []string{mlattr.OperationInvokeAgent, mlattr.OperationInvokeWorkflow}
	wrapperNames      = []string{
		"invoke_agent", "invoke_workflow", "agent_step",
		// Vercel's, each above spans of its own calls: doGenerate, doStream,
		// doEmbed.
		"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject", "ai.embed", "ai.embedMany",
	}
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
	// answer is the id of the answer that used the tokens, or empty.
	answer string
	// sided is true where the span says whose count it has.
	sided bool
}

var (
	slotUsageCounted = mlattr.SlotOf(mlattr.UsageCounted)
	slotAnswer       = mlattr.SlotOf(mlattr.GenAIResponseID)
	slotSide         = mlattr.SlotOf(mlattr.Side)
)

func usageOf(f *mlattr.Facts, name string) usage {
	input, hasInput := f.IntAt(slotInput)
	output, hasOutput := f.IntAt(slotOutput)
	operation, estimated := f.TextAt(slotGenAIOperation), f.At(slotEstimated)
	if !hasInput && !hasOutput && operation == "" {
		return usage{}
	}
	mark := f.At(slotUsageCounted)
	u := usage{
		reported:  (input > 0 || output > 0) && (estimated == nil || !estimated.Bool),
		countable: (hasInput || hasOutput || mlattr.AsksModel(operation)) && mark == nil,
		wrapper:   wraps(name, operation),
		sided:     f.At(slotSide) != nil,
	}
	if u.reported && !u.wrapper && (mark == nil || mark.Bool) {
		u.answer = f.TextAt(slotAnswer)
	}
	return u
}

// answers says whether a span is the one by which a server answered: somebody
// else asked for what it used.
func answers(span ptrace.Span) bool {
	return span.Kind() == ptrace.SpanKindServer && !span.ParentSpanID().IsEmpty() && !span.TraceID().IsEmpty()
}

// covering is a span that is not in the batch, and above one that used tokens.
type covering struct {
	trace [16]byte
	spanAbove
}

// asking is a place in the batch from which the client of a server is looked
// for, and the server's service.
type asking struct {
	at      int32
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
	ix.watched(r)
	for _, at := range r.users {
		r.traces[r.nodes[at].traceAt].used = true
	}
	for _, asked := range r.asked {
		r.traces[r.nodes[asked.at].traceAt].used = true
	}
}

// coverUsage marks the ancestors of what findUsage found, up to the first of
// another service, and remembers the first that is not in the batch.
func (r *resolution) coverUsage(ix index) {
	for _, user := range r.users {
		n := &r.nodes[user]
		for n.parent != ([8]byte{}) && n.parent != n.id {
			if n.above == nowhere {
				r.covering = append(r.covering, covering{n.trace, spanAbove{id: n.parent, service: n.service}})
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
	r.findClients()
	if len(r.covering) > 0 {
		ix.watch(r.covering)
	}
}

// findClients looks above each server that used tokens for the first span that
// says so too: that is its client, unless the service is the server's own.
func (r *resolution) findClients() {
	for _, user := range r.users {
		if n := &r.nodes[user]; n.uses && n.server {
			r.askAbove(user, n.service)
		}
	}
	for _, asked := range r.asked {
		if !r.isClient(asked.at, asked.service) {
			r.askAbove(asked.at, asked.service)
		}
	}
}

func (r *resolution) askAbove(at int32, service uint64) {
	for {
		n := &r.nodes[at]
		if n.parent == ([8]byte{}) || n.parent == n.id {
			return
		}
		if n.above == nowhere {
			r.covering = append(r.covering, covering{n.trace, spanAbove{id: n.parent, service: service, serves: true}})
			return
		}
		if at = n.above; r.isClient(at, service) {
			return
		}
	}
}

// isClient says whether nobody further up needs to be asked. What was asked
// before is not asked again, which ends a cycle too.
func (r *resolution) isClient(at int32, service uint64) bool {
	n := &r.nodes[at]
	if n.uses {
		n.client = n.client || n.service != service
		return true
	}
	before := n.asked
	n.asked = true
	return before
}

// claim is a span that says that one answer's tokens are its own.
type claim struct {
	answer  symbol
	service uint64
	at      int32
}

// countAnswers marks the spans that report an answer which another span of
// the service has reported.
func (r *resolution) countAnswers(ix index) {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.answer != 0 && !n.covered && n.traceAt != nowhere && n.id != ([8]byte{}) {
			r.claims = append(r.claims, claim{n.answer, n.service, int32(i)})
		}
	}
	if len(r.claims) == 0 {
		return
	}
	// In any order of the batch the same span is the first of its answer.
	slices.SortFunc(r.claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.answer, b.answer), cmp.Compare(a.service, b.service),
			bytes.Compare(r.nodes[a.at].trace[:], r.nodes[b.at].trace[:]), bytes.Compare(r.nodes[a.at].id[:], r.nodes[b.at].id[:]))
	})
	ix.claim(r.claims, r.nodes, &r.texts)
}
