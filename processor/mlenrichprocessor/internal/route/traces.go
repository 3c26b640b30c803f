package route

import (
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// divideTraces gives every resource one route.
func divideTraces(td ptrace.Traces) {
	list, p := td.ResourceSpans(), partition{budget: newBudget()}
	for i := range list.Len() {
		rs := list.At(i)
		if !p.begin(rs.Resource(), func() int { return sizeOfSpans(rs) }) {
			continue
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				p.see(span.Attributes())
			}
		}
		stays := p.stays()
		if p.several() {
			to := newCopies(rs, &p, list.AppendEmpty, func(to ptrace.ResourceSpans) ptrace.ScopeSpans { return to.ScopeSpans().AppendEmpty() })
			move(to, stays, rs.ScopeSpans(), ptrace.ScopeSpans.Spans, func(span ptrace.Span) string { return p.of(span.Attributes()) })
		}
		p.write(rs.Resource().Attributes(), stays)
	}
}

// sizeOfSpans returns the encoded size of a resource and its scopes in bytes,
// without the spans.
func sizeOfSpans(rs ptrace.ResourceSpans) int {
	shell := ptrace.NewResourceSpans()
	rs.Resource().CopyTo(shell.Resource())
	for _, ss := range rs.ScopeSpans().All() {
		ss.Scope().CopyTo(shell.ScopeSpans().AppendEmpty().Scope())
	}
	return (&ptrace.ProtoMarshaler{}).ResourceSpansSize(shell)
}
