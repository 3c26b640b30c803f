package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// spanOverhead is what a copied span takes in memory beside its texts.
const spanOverhead = 512

// remember keeps copies of the batch's spans that belong to traces which
// failed: those above the failures, other failed ones, and the last others.
func (r *recorder) remember(ctx context.Context, td ptrace.Traces) {
	var found map[pcommon.TraceID][]located
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				id := span.TraceID()
				if !r.book.kept.mayHave(id) || id.IsEmpty() {
					continue
				}
				if found == nil {
					found = make(map[pcommon.TraceID][]located)
				}
				found[id] = append(found[id], located{span: span, resource: rs.Resource(), scope: ss.Scope().Name()})
			}
		}
	}
	for id, spans := range found {
		if !r.book.holds(id) {
			continue // the filter knows another one like it
		}
		if late := r.book.put(id, r.copies(id, spans)); late > 0 {
			r.telemetry.ProcessorReproGenLateAncestors.Add(ctx, int64(late), r.own)
		}
	}
}

// copies copies of a trace's spans those that are worth it.
func (r *recorder) copies(id pcommon.TraceID, spans []located) []*heldSpan {
	var above map[pcommon.SpanID]bool
	first := max(0, len(spans)-r.cfg.Traces.SpansPerTrace)
	if first > 0 {
		parents := make(map[pcommon.SpanID]pcommon.SpanID, len(spans))
		for _, l := range spans {
			parents[l.span.SpanID()] = l.span.ParentSpanID()
		}
		above = r.book.chains(id, parents)
	}
	var out []*heldSpan
	for i := range spans {
		l := &spans[i]
		if i < first && !above[l.span.SpanID()] {
			continue
		}
		c := r.newCopier()
		s := &heldSpan{
			id: l.span.SpanID(), parent: l.span.ParentSpanID(),
			copied: c.span(l.span, l.scope), failed: look(l.span)&signFailed != 0,
		}
		s.weight = int64(maxCopyBytes-c.budget) + spanOverhead
		out = append(out, s)
	}
	return out
}
