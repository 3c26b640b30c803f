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
			moveSpans(list, rs, &p, stays)
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

// targetSpans is where the spans of one run go.
type targetSpans struct {
	resource ptrace.ResourceSpans
	scope    ptrace.ScopeSpans
	// of is the number of the scope that scope is a copy of, from 1.
	of int
}

// moveSpans moves the spans of other runs than the one that stays to copies of
// their resource at the end of the list.
func moveSpans(list ptrace.ResourceSpansSlice, rs ptrace.ResourceSpans, p *partition, stays string) {
	targets := make(map[string]*targetSpans, len(p.runs))
	scope := 0
	rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
		scope++
		before := ss.Spans().Len()
		ss.Spans().RemoveIf(func(span ptrace.Span) bool {
			run := p.of(span.Attributes())
			if run == stays {
				return false
			}
			to := targets[run]
			if to == nil {
				to = &targetSpans{resource: list.AppendEmpty()}
				rs.Resource().CopyTo(to.resource.Resource())
				to.resource.SetSchemaUrl(rs.SchemaUrl())
				p.write(to.resource.Resource().Attributes(), run)
				targets[run] = to
			}
			if to.of != scope {
				to.of, to.scope = scope, to.resource.ScopeSpans().AppendEmpty()
				ss.Scope().CopyTo(to.scope.Scope())
				to.scope.SetSchemaUrl(ss.SchemaUrl())
			}
			span.MoveTo(to.scope.Spans().AppendEmpty())
			return true
		})
		return before > 0 && ss.Spans().Len() == 0
	})
}
