package incident

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// scoped is a span with its scope.
type scoped struct {
	ptrace.Span
	scope string
}

// AddSpans keeps copies of a batch's spans that belong to traces which failed:
// those above the failures, other failed ones, and the last others. It returns
// the number of ancestors that came after their artifact was written.
func (tr *Tracker) AddSpans(td ptrace.Traces) (late int) {
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
		if needed, kept := tr.needed(id, spans); kept { // the filter may mean another trace
			late += tr.addSpans(id, tr.copies(spans, needed))
		}
	}
	return late
}

// copies returns copies of a trace's last spans and of those that are needed.
func (tr *Tracker) copies(spans []scoped, needed map[pcommon.SpanID]bool) []*Span {
	first := max(0, len(spans)-tr.cfg.Spans)
	var out []*Span
	for i, s := range spans {
		if i < first && !needed[s.SpanID()] {
			continue
		}
		c := snapshot.Without(tr.kinds.IsPayload)
		copied := &Span{
			id: s.SpanID(), parent: s.ParentSpanID(),
			copied: c.Span(s.Span, s.scope), failed: detect.Failed(s.Span),
		}
		copied.weight = int64(c.Used()) + snapshot.SpanOverhead
		out = append(out, copied)
	}
	return out
}
