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

// span is the copy of a span of a trace that failed.
type span struct {
	id, parent pcommon.SpanID
	copied     failure.Span
	failed     bool
	weight     int64
}

// trace is what is known of a trace that failed. The tracker's lock guards it.
type trace struct {
	id        pcommon.TraceID
	origin    share.Origin // of its first failure
	spans     map[pcommon.SpanID]*span
	order     []*span // as they came
	incidents []*Incident
	last      uint64 // the latest incident
	omitted   int
	bytes     int64
}

// weight is the number of bytes of the trace and its failures.
func (t *trace) weight() int64 {
	if t == nil {
		return 0
	}
	weight := t.bytes
	for _, i := range t.incidents {
		weight += int64(i.Failure.Weight)
	}
	return weight
}

// above returns the spans above an incident, the parent first, and whether
// the last one is a root.
func (t *trace) above(i *Incident) (spans []*span, complete bool) {
	seen := map[pcommon.SpanID]bool{i.Span.Span: true}
	for at := i.Parent.Span; ; {
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
	if i.Parent.Span == n.Span.Span {
		return false // they are each other's parent, or i is below n
	}
	above, _ := t.above(n)
	return n.Parent.Span == i.Span.Span || slices.ContainsFunc(above, func(s *span) bool { return s.parent == i.Span.Span })
}

// carries reports whether an incident is that of the HTTP request that another
// one, a model's call, was made by.
func (t *trace) carries(request, call *Incident) bool {
	return call.explains && request.transport && !request.explains && request.Failure.Call == nil && t.isBelow(request, call)
}

// complete returns the failure of an incident with the spans above it, the failed ones of
// the trace, and the others if there is room for them.
func (t *trace) complete(i *Incident, room bool) *failure.Failure {
	f := *i.Failure
	keep := func(spans *[]failure.Span, s *span) {
		*spans = append(*spans, s.copied)
		f.Weight += int(s.weight)
	}
	above, complete := t.above(i)
	f.Complete, f.OmittedSpans = complete, t.omitted
	known := map[pcommon.SpanID]bool{i.Span.Span: true}
	for _, s := range above {
		known[s.id] = true
		keep(&f.Ancestors, s)
	}
	for _, s := range t.order {
		switch {
		case known[s.id]:
		case s.failed:
			keep(&f.Siblings, s)
		case room:
			keep(&f.Others, s)
		default:
			f.OmittedSpans++
		}
	}
	return &f
}

// put adds a span; one that is known already is not added again.
func (t *trace) put(s *span) {
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
		needed[i.Span.Span] = true
		above, _ := t.above(i)
		for _, s := range above {
			needed[s.id] = true
		}
	}
	for _, failed := range [...]bool{false, true} {
		t.order = slices.DeleteFunc(t.order, func(s *span) bool {
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

// AddSpans keeps copies of a batch's spans that belong to traces which failed:
// those above the failures, other failed ones, and the last others.
func (tr *Tracker) AddSpans(td ptrace.Traces) {
	found := make(map[pcommon.TraceID][]*span)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				// The filter may mean another trace.
				if id := s.TraceID(); tr.filter.MayHave(id) && tr.has(id) {
					found[id] = append(found[id], tr.copyOf(s, ss.Scope().Name()))
				}
			}
		}
	}
	for id, spans := range found {
		tr.addSpans(id, spans)
	}
}

// copyOf returns a copy of a span.
func (tr *Tracker) copyOf(s ptrace.Span, scope string) *span {
	c := snapshot.Without(tr.kinds.IsPayload)
	out := &span{id: s.SpanID(), parent: s.ParentSpanID(), copied: c.Span(s, scope), failed: detect.Failed(s)}
	out.weight = int64(c.Used()) + snapshot.SpanOverhead
	return out
}

// has reports whether a trace is kept.
func (tr *Tracker) has(id pcommon.TraceID) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.traces[id] != nil
}

// addSpans keeps copies of spans of a trace that is kept.
func (tr *Tracker) addSpans(id pcommon.TraceID, spans []*span) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	t, ok := tr.traces[id]
	if !ok {
		return
	}
	add := func() {
		for _, s := range spans {
			for _, i := range t.incidents {
				i.adopt(s)
			}
			t.put(s)
		}
		t.trim(tr.cfg.Spans)
	}
	// Where there is no room, the spans above the failures stay, and at last not even those.
	for _, change := range [...]func(){add, func() { t.trim(0) }, t.clear} {
		before := t.bytes
		change()
		tr.bytes += t.bytes - before
		if tr.makeRoom(0, id, t.origin) {
			return
		}
	}
}
