package reprogenprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	maxAncestors  = 32
	maxErrorSpans = 512 // of a batch that are looked at; further ones are dropped
)

// located is a span with the places it hangs at.
type located struct {
	span     ptrace.Span
	resource pcommon.Resource
	scope    string
}

// spanKey identifies a span of a batch.
type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// isError reports whether a span failed. The end of a data loader is raised
// as an exception and is none.
func isError(span ptrace.Span) bool {
	if span.Status().Code() != ptrace.StatusCodeError {
		return false
	}
	end, ok := span.Attributes().Get(mlattr.EpochEnd)
	return !ok || end.Type() != pcommon.ValueTypeBool || !end.Bool()
}

// errorSpans returns the batch's error spans, at most maxErrorSpans, and how
// many more there were. It looks at each span once, and a batch without
// errors costs nothing else.
func errorSpans(td ptrace.Traces) (found []located, more int) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if !isError(span) {
					continue
				}
				if len(found) == maxErrorSpans {
					more++
					continue
				}
				found = append(found, located{span: span, resource: rs.Resource(), scope: ss.Scope().Name()})
			}
		}
	}
	return found, more
}

// candidates chooses from a batch's error spans those that are worth an
// artefact: the ones without an error child, where the error began; but if
// such a one has no payload, the nearest failed ancestor that has one and
// tells of the same error.
func candidates(found []located) []located {
	byID := make(map[spanKey]int, len(found))
	isParent := make(map[spanKey]bool, len(found))
	for i, l := range found {
		byID[spanKey{l.span.TraceID(), l.span.SpanID()}] = i
		if p := l.span.ParentSpanID(); !p.IsEmpty() && p != l.span.SpanID() {
			isParent[spanKey{l.span.TraceID(), p}] = true
		}
	}
	chosen := make(map[int]bool, len(found))
	var out []located
	for i, l := range found {
		if isParent[spanKey{l.span.TraceID(), l.span.SpanID()}] && !inCycle(found, byID, i) {
			continue
		}
		best := i
		if !hasPayload(l.span) {
			best = payloadAbove(found, byID, i)
		}
		if !chosen[best] {
			chosen[best] = true
			out = append(out, found[best])
		}
	}
	return out
}

func payloadAbove(found []located, byID map[spanKey]int, leaf int) int {
	own := errorOf(found[leaf].span)
	at := leaf
	for range maxAncestors {
		parent, ok := byID[spanKey{found[at].span.TraceID(), found[at].span.ParentSpanID()}]
		if !ok {
			return leaf
		}
		at = parent
		if hasPayload(found[at].span) && sameError(own, errorOf(found[at].span)) {
			return at
		}
	}
	return leaf
}

// inCycle reports whether a span is its own ancestor. Such a one has no
// leaf, and its error would be lost.
func inCycle(found []located, byID map[spanKey]int, start int) bool {
	at := start
	for range maxAncestors {
		parent, ok := byID[spanKey{found[at].span.TraceID(), found[at].span.ParentSpanID()}]
		if !ok {
			return false
		}
		if parent == start {
			return true
		}
		at = parent
	}
	return false
}

// ancestors returns the spans above the span that are in td, the parent
// first, and whether the last one is a root.
func ancestors(td ptrace.Traces, span ptrace.Span) (above []located, complete bool) {
	if span.ParentSpanID().IsEmpty() {
		return nil, true
	}
	byID := make(map[pcommon.SpanID]located)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.TraceID() == span.TraceID() {
					byID[s.SpanID()] = located{span: s, resource: rs.Resource(), scope: ss.Scope().Name()}
				}
			}
		}
	}
	seen := map[pcommon.SpanID]bool{span.SpanID(): true}
	at := span
	for range maxAncestors {
		parent, ok := byID[at.ParentSpanID()]
		if !ok || seen[parent.span.SpanID()] {
			return above, false
		}
		seen[parent.span.SpanID()] = true
		above = append(above, parent)
		if parent.span.ParentSpanID().IsEmpty() {
			return above, true
		}
		at = parent.span
	}
	return above, false
}
