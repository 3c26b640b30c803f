package reprogenprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxAncestors is how far up a trace is followed.
const maxAncestors = 32

// spanKey identifies a span of a batch.
type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

func (l *located) key() spanKey { return spanKey{l.span.TraceID(), l.span.SpanID()} }

func (l *located) parentKey() spanKey { return spanKey{l.span.TraceID(), l.span.ParentSpanID()} }

// candidates chooses from a batch's failed spans those that are worth an
// artefact: the ones without a failed child, where the error began; but if
// such a one has no call, the nearest failed ancestor that has one and tells
// of the same error, or the call of a model that it is the HTTP request of. The
// others are returned as well.
func candidates(read *reader, failed []located) (chosen, others []located) {
	if len(failed) == 1 {
		return failed, nil
	}
	byID := make(map[spanKey]int, len(failed))
	isParent := make(map[spanKey]bool, len(failed))
	for i := range failed {
		l := &failed[i]
		byID[l.key()] = i
		if p := l.span.ParentSpanID(); !p.IsEmpty() && p != l.span.SpanID() {
			isParent[l.parentKey()] = true
		}
	}
	taken := make([]bool, len(failed))
	reached := make([]bool, len(failed))
	choose := func(i int) {
		// What is above is a consequence; each span is marked once.
		for at, ok := i, true; ok && !reached[at]; at, ok = byID[failed[at].parentKey()] {
			reached[at] = true
		}
		best := i
		if !read.hasPayload(failed[i].span) {
			best = payloadAbove(read, failed, byID, i)
		}
		if !taken[best] {
			taken[best] = true
			chosen = append(chosen, failed[best])
		}
	}
	for i := range failed {
		if !isParent[failed[i].key()] {
			choose(i)
		}
	}
	// Spans that are each other's ancestors have no leaf among them.
	for i := range failed {
		if !reached[i] {
			choose(i)
		}
	}
	for i, l := range failed {
		if !taken[i] {
			others = append(others, l)
		}
	}
	return chosen, others
}

// carries reports whether a span is the HTTP request of a model's call above
// it. Clients of HTTP and of models name one error differently, and the model's
// explains it.
func carries(request, call *located) bool {
	return isRequest(request.span.Attributes()) && explains(call.span.Attributes())
}

// explains reports whether a span is a model's call, or has its conversation.
func explains(attributes pcommon.Map) bool {
	return isModelCall(attributes) || hasConversation(attributes)
}

func payloadAbove(read *reader, failed []located, byID map[spanKey]int, leaf int) int {
	at, best := leaf, leaf
	for range maxAncestors {
		parent, ok := byID[failed[at].parentKey()]
		if !ok {
			break
		}
		at = parent
		carried := carries(&failed[leaf], &failed[at])
		if read.hasPayload(failed[at].span) && (sameError(failed[best].err, failed[at].err) || carried) {
			return at
		}
		if carried && best == leaf {
			best = at
		}
	}
	return best
}
