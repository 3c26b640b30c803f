// Package admission lets a component ask which identities of spans may become labels,
// without a copy of the spans.
package admission

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Identities admits the identities of spans: the section identities of ml_guard.
type Identities interface {
	// Admit returns what stands for the resources and spans with identities that are not
	// admitted. It does not change td.
	Admit(ctx context.Context, td ptrace.Traces) Replaced
}

// Position locates a span: the indices of its resource, its scope and itself.
type Position struct{ Resource, Scope, Span int }

// Replaced has copies of resources and spans in which labels are replaced, and the spans
// whose run is hidden. The zero value replaces nothing.
type Replaced struct {
	resources map[int]pcommon.Map
	spans     map[Position]ptrace.Span
	// hidden are in the order of the spans, of which the next one is asked for.
	hidden []hiddenRun
	next   int
}

// hiddenRun is a span whose run has an identity that stands for it.
type hiddenRun struct {
	at       Position
	identity int64
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
	other := pcommon.NewMap()
	attrs.CopyTo(other)
	mlattr.Put(&r.resources, i, other)
	return other
}

// CopySpan replaces a span by a copy, and returns that.
func (r *Replaced) CopySpan(at Position, span ptrace.Span) ptrace.Span {
	other := ptrace.NewSpan()
	span.CopyTo(other)
	mlattr.Put(&r.spans, at, other)
	return other
}

// HideRun hides the run of a span: one with this identity stands for it. It is called in the
// order of the spans.
func (r *Replaced) HideRun(at Position, identity int64) {
	r.hidden = append(r.hidden, hiddenRun{at, identity})
}

// HiddenRun returns what stands for the run of a span, and whether it is hidden. It is called
// once for each span, in their order.
func (r *Replaced) HiddenRun(at Position) (identity int64, hidden bool) {
	if r == nil || r.next == len(r.hidden) || r.hidden[r.next].at != at {
		return 0, false
	}
	r.next++
	return r.hidden[r.next-1].identity, true
}

// In returns td, or a copy of it with what is replaced in it.
func (r *Replaced) In(td ptrace.Traces) ptrace.Traces {
	if len(r.resources)+len(r.spans)+len(r.hidden) == 0 {
		return td
	}
	other := ptrace.NewTraces()
	td.CopyTo(other)
	all := other.ResourceSpans()
	for i, attrs := range r.resources {
		attrs.MoveTo(all.At(i).Resource().Attributes())
	}
	spanAt := func(at Position) ptrace.Span {
		return all.At(at.Resource).ScopeSpans().At(at.Scope).Spans().At(at.Span)
	}
	for at, span := range r.spans {
		span.MoveTo(spanAt(at))
	}
	for _, one := range r.hidden {
		Hide(spanAt(one.at).Attributes(), one.identity)
	}
	return other
}

// Hide replaces the run of a resource or span, and the host, because ml_metrics labels
// calls without a run by host. It sets no overflow mark: series without run labels lack
// nothing, and ml_metrics marks the others. The identity, a hash of them, keeps the spans of
// two ranks from being counted as those of one.
func Hide(attrs pcommon.Map, identity int64) {
	HideKeys(attrs, mlattr.TrainingRunID, mlattr.JobID, mlattr.HostName)
	attrs.PutStr(mlattr.RunID, mlattr.Other)
	attrs.PutInt(mlattr.Identity, identity)
}

// HideKeys replaces the values of existing keys.
func HideKeys(attrs pcommon.Map, keys ...string) {
	for _, key := range keys {
		if v, ok := attrs.Get(key); ok {
			v.SetStr(mlattr.Other)
		}
	}
}
