package route

import (
	"fmt"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// maxCopiedPerSpan is how many bytes of copies a span may cause unseen: less than
// half of what a span has.
const maxCopiedPerSpan = 128

// maxCallBytes is how many bytes of copied resources a call has about at most.
const maxCallBytes = 1 << 20

// maxRequestBytes is how many bytes of copies one request may cause: 2 kB for each
// of 32,000 traces.
const maxRequestBytes = 64 << 20

// byTrace returns the calls that send the spans of a request on with a resource for each
// trace, where the resource is large beside them. load_balancing makes these copies when it
// sends: a resource of 400 kB with 60,000 traces would become 24 GB then. Made here, they
// are counted by the limits of the exporter's queue and batches.
func byTrace(td ptrace.Traces) []ptrace.Traces {
	calls, copied := []ptrace.Traces{ptrace.NewTraces()}, 0
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		if bytes, spans := copiedBytes(rs); bytes <= spans*maxCopiedPerSpan {
			return false
		}
		for _, ss := range rs.ScopeSpans().All() {
			shell := ptrace.NewResourceSpans()
			rs.Resource().CopyTo(shell.Resource())
			shell.SetSchemaUrl(rs.SchemaUrl())
			scope := shell.ScopeSpans().AppendEmpty()
			ss.Scope().CopyTo(scope.Scope())
			scope.SetSchemaUrl(ss.SchemaUrl())
			size := (&ptrace.ProtoMarshaler{}).ResourceSpansSize(shell)
			targets := make(map[pcommon.TraceID]ptrace.SpanSlice)
			for _, span := range ss.Spans().All() {
				to, ok := targets[span.TraceID()]
				if !ok {
					if copied > 0 && copied+size > maxCallBytes {
						calls, copied = append(calls, ptrace.NewTraces()), 0
						clear(targets)
					}
					copied += size
					one := calls[len(calls)-1].ResourceSpans().AppendEmpty()
					shell.CopyTo(one)
					to = one.ScopeSpans().At(0).Spans()
					targets[span.TraceID()] = to
				}
				span.MoveTo(to.AppendEmpty())
			}
		}
		return true
	})
	last := &calls[len(calls)-1]
	last.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	*last = td
	return calls
}

// checkCopies returns a permanent error for a request whose resources would be
// sent so often that a few megabytes become gigabytes.
func checkCopies(td ptrace.Traces) error {
	total := 0
	for _, rs := range td.ResourceSpans().All() {
		copied, _ := copiedBytes(rs)
		if total += copied; total > maxRequestBytes {
			return consumererror.NewPermanent(fmt.Errorf("the resources of the request are too large for its number of traces: their copies would have more than %d bytes", maxRequestBytes))
		}
	}
	return nil
}

// copiedBytes returns the size of the copies that a resource for each trace takes,
// and the number of spans.
func copiedBytes(rs ptrace.ResourceSpans) (copied, spans int) {
	copies := -1
	for _, ss := range rs.ScopeSpans().All() {
		copies += tracesOf(ss.Spans())
		spans += ss.Spans().Len()
	}
	if copies <= 0 {
		return 0, spans
	}
	return copies * sizeOf(rs, rs.ScopeSpans()), spans
}

// tracesOf returns how many traces spans have, more if their order mixes them.
func tracesOf(spans ptrace.SpanSlice) int {
	n := min(spans.Len(), 1)
	for i := 1; i < spans.Len(); i++ {
		if spans.At(i).TraceID() != spans.At(i-1).TraceID() {
			n++
		}
	}
	return n
}
