package detect

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

// MaxAncestors is how far up a trace is followed.
const MaxAncestors = 32

// Choose returns the failed spans of a batch that are worth an artifact: those
// without a failed child, where the error began; but if such a one has no call,
// the nearest failed ancestor that has one and the same error, or the call of a
// model that it is the HTTP request of. The others are returned as well.
func Choose(kinds kind.Registry, failed []Candidate) (chosen, others []Candidate) {
	if len(failed) == 1 {
		return failed, nil
	}
	byID := make(map[failure.SpanKey]int, len(failed))
	isParent := make(map[failure.SpanKey]bool, len(failed))
	for i := range failed {
		c := &failed[i]
		byID[c.Key()] = i
		if p := c.Span.ParentSpanID(); !p.IsEmpty() && p != c.Span.SpanID() {
			isParent[c.ParentKey()] = true
		}
	}
	taken := make([]bool, len(failed))
	reached := make([]bool, len(failed))
	choose := func(i int) {
		// What is above is a consequence; each span is marked once.
		for at, ok := i, true; ok && !reached[at]; at, ok = byID[failed[at].ParentKey()] {
			reached[at] = true
		}
		best := i
		if !kinds.HasCall(failed[i].Span) {
			best = callAbove(kinds, failed, byID, i)
		}
		if !taken[best] {
			taken[best] = true
			chosen = append(chosen, failed[best])
		}
	}
	for i := range failed {
		if !isParent[failed[i].Key()] {
			choose(i)
		}
	}
	// Spans that are each other's ancestors have no leaf among them.
	for i := range failed {
		if !reached[i] {
			choose(i)
		}
	}
	for i, c := range failed {
		if !taken[i] {
			others = append(others, c)
		}
	}
	return chosen, others
}

// callAbove returns the ancestor whose call stands for that of a leaf without
// one, or the leaf.
func callAbove(kinds kind.Registry, failed []Candidate, byID map[failure.SpanKey]int, leaf int) int {
	at, best := leaf, leaf
	for range MaxAncestors {
		parent, ok := byID[failed[at].ParentKey()]
		if !ok {
			break
		}
		at = parent
		// Clients of HTTP and of models name one error differently, and the
		// model's explains it.
		carried := attr.IsRequest(failed[leaf].Span.Attributes()) && kinds.Explains(failed[at].Span)
		if kinds.HasCall(failed[at].Span) && (sameError(failed[best].Err, failed[at].Err) || carried) {
			return at
		}
		if carried && best == leaf {
			best = at
		}
	}
	return best
}
