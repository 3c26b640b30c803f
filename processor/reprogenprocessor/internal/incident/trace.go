package incident

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// Span is the copy of a span of a trace that failed.
type Span struct {
	id, parent pcommon.SpanID
	copied     failure.Span
	failed     bool
	weight     int64
}

// trace is what is known of a trace that failed. The tracker's lock guards it.
type trace struct {
	id        pcommon.TraceID
	origin    share.Origin // of its first failure
	spans     map[pcommon.SpanID]*Span
	order     []*Span // as they came
	incidents []*Incident
	omitted   int
	bytes     int64
}

// weight is the number of bytes of the trace and its failures.
func (t *trace) weight() int64 {
	weight := t.bytes
	for _, i := range t.incidents {
		weight += int64(i.Failure.Weight)
	}
	return weight
}

// above returns the spans above an incident, the parent first, and whether
// the last one is a root.
func (t *trace) above(i *Incident) (spans []*Span, complete bool) {
	seen := map[pcommon.SpanID]bool{i.span: true}
	for at := i.parent; ; {
		if at.IsEmpty() {
			return spans, true
		}
		s, ok := t.spans[at]
		if !ok || seen[at] || len(spans) == detect.MaxAncestors {
			return spans, false
		}
		seen[at] = true
		spans = append(spans, s)
		at = s.parent
	}
}

// isBelow reports whether n's span has i's span above it.
func (t *trace) isBelow(n, i *Incident) bool {
	if i.parent == n.span {
		return false // they are each other's parent, or i is below n
	}
	at := n.parent
	for range detect.MaxAncestors {
		if at == i.span {
			return true
		}
		s, ok := t.spans[at]
		if !ok {
			return false
		}
		at = s.parent
	}
	return false
}

// carries reports whether an incident is that of the HTTP request that another
// one, a model's call, was made by.
func (t *trace) carries(request, call *Incident) bool {
	return call.explains && request.transport && !request.explains && request.Failure.Call == nil && t.isBelow(request, call)
}

// put adds a span; one that is known already is not added again.
func (t *trace) put(s *Span) {
	if _, known := t.spans[s.id]; known {
		return
	}
	t.spans[s.id] = s
	t.order = append(t.order, s)
	t.bytes += s.weight
}

// trim removes the oldest spans until at most limit are left, those that did
// not fail first, and never an incident's span nor one above it.
func (t *trace) trim(limit int) {
	excess := len(t.order) - limit
	if excess <= 0 {
		return
	}
	needed := make(map[pcommon.SpanID]bool)
	for _, i := range t.incidents {
		needed[i.span] = true
		above, _ := t.above(i)
		for _, s := range above {
			needed[s.id] = true
		}
	}
	for _, failed := range [...]bool{false, true} {
		t.order = slices.DeleteFunc(t.order, func(s *Span) bool {
			if excess == 0 || s.failed != failed || needed[s.id] {
				return false
			}
			excess--
			t.omitted++
			t.bytes -= s.weight
			delete(t.spans, s.id)
			return true
		})
	}
}

// clear removes all spans: where there is no room for those above a failure,
// it is written without them.
func (t *trace) clear() {
	t.omitted += len(t.order)
	t.order, t.bytes = nil, 0
	clear(t.spans)
}

// scoped is a span with its scope.
type scoped struct {
	ptrace.Span
	scope string
}

// AddSpans keeps copies of a batch's spans that belong to traces which failed:
// those above the failures, other failed ones, and the last others.
func (tr *Tracker) AddSpans(td ptrace.Traces) {
	found := make(map[pcommon.TraceID][]scoped)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if id := span.TraceID(); tr.filter.MayHave(id) && !id.IsEmpty() {
					found[id] = append(found[id], scoped{span, ss.Scope().Name()})
				}
			}
		}
	}
	for id, spans := range found {
		if tr.has(id) { // the filter may mean another trace
			tr.addSpans(id, tr.copies(spans))
		}
	}
}

// copies returns copies of a trace's spans.
func (tr *Tracker) copies(spans []scoped) []*Span {
	out := make([]*Span, len(spans))
	for i, s := range spans {
		c := snapshot.Without(tr.kinds.IsPayload)
		out[i] = &Span{
			id: s.SpanID(), parent: s.ParentSpanID(),
			copied: c.Span(s.Span, s.scope), failed: detect.Failed(s.Span),
		}
		out[i].weight = int64(c.Used()) + snapshot.SpanOverhead
	}
	return out
}
