// Package admission lets a component ask which identities of spans may become labels,
// without a copy of the spans.
package admission

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Identities admits the identities of spans: the section identities of ml_guard.
type Identities interface {
	// Admit returns what stands for the resources and spans with identities that are not
	// admitted. It does not change td.
	Admit(ctx context.Context, td ptrace.Traces) Replaced
}

// Position locates a span: the indices of its resource, its scope and itself.
type Position struct{ Resource, Scope, Span int }

// Replaced has copies of resources and spans in which labels are replaced. The zero value
// replaces nothing.
type Replaced struct {
	resources map[int]pcommon.Map
	spans     map[Position]ptrace.Span
}

// Resource returns the attributes of the resource with an index, attrs if they are not
// replaced. Nothing is if r is nil.
func (r *Replaced) Resource(i int, attrs pcommon.Map) pcommon.Map {
	if r == nil {
		return attrs
	}
	if other, ok := r.resources[i]; ok {
		return other
	}
	return attrs
}

// Span returns the span at a position, span if it is not replaced.
func (r *Replaced) Span(at Position, span ptrace.Span) ptrace.Span {
	if r == nil || len(r.spans) == 0 {
		return span
	}
	if other, ok := r.spans[at]; ok {
		return other
	}
	return span
}

// CopyResource replaces the attributes of a resource by a copy of attrs, and returns that.
func (r *Replaced) CopyResource(i int, attrs pcommon.Map) pcommon.Map {
	if r.resources == nil {
		r.resources = make(map[int]pcommon.Map)
	}
	other := pcommon.NewMap()
	attrs.CopyTo(other)
	r.resources[i] = other
	return other
}

// CopySpan replaces a span by a copy, and returns that.
func (r *Replaced) CopySpan(at Position, span ptrace.Span) ptrace.Span {
	if r.spans == nil {
		r.spans = make(map[Position]ptrace.Span)
	}
	other := ptrace.NewSpan()
	span.CopyTo(other)
	r.spans[at] = other
	return other
}

// In returns td, or a copy of it with what is replaced in it.
func (r *Replaced) In(td ptrace.Traces) ptrace.Traces {
	if len(r.resources)+len(r.spans) == 0 {
		return td
	}
	other := ptrace.NewTraces()
	td.CopyTo(other)
	all := other.ResourceSpans()
	for i, attrs := range r.resources {
		attrs.MoveTo(all.At(i).Resource().Attributes())
	}
	for at, span := range r.spans {
		span.MoveTo(all.At(at.Resource).ScopeSpans().At(at.Scope).Spans().At(at.Span))
	}
	return other
}
