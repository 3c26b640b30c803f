package mlguardprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
)

// growth is how many times as large a request is at the most behind the processors: one that
// had less when it arrived need not be measured.
const growth = 32

// inParts passes traces on to next in parts, and counts what next refuses: each part that is
// dropped, or all spans of a request of which a part is refused, as the sender is told.
func (g *guard) inParts(next func(context.Context, ptrace.Traces) error) func(context.Context, ptrace.Traces) error {
	counted := func(next func(context.Context, ptrace.Traces) error) func(context.Context, ptrace.Traces) error {
		return passing(g, ptrace.Traces.SpanCount, next)
	}
	divided := func(next func(context.Context, ptrace.Traces) error) func(context.Context, ptrace.Traces) error {
		return func(ctx context.Context, td ptrace.Traces) error {
			return eachPart(td, sender.Size(ctx), g.out.MaxSize, func(part ptrace.Traces) error { return next(ctx, part) })
		}
	}
	if g.out.drops() {
		return divided(counted(next))
	}
	return counted(divided(next))
}

// eachPart passes on traces of at most limit bytes of OTLP as they are, and larger ones in
// parts, until one is refused. A single span is passed on whatever its size, and so are
// spans whose resource takes most of the bytes: each part would have it. Parts are copies;
// td does not change. 0 as limit is without limit. had is the size of the request when it
// arrived, 0 if that is unknown.
func eachPart(td ptrace.Traces, had, limit int, pass func(ptrace.Traces) error) error {
	var sizer ptrace.ProtoMarshaler
	spans := td.SpanCount()
	if limit <= 0 || spans < 2 || had > 0 && had <= limit/growth {
		return pass(td)
	}
	size := sizer.TracesSize(td)
	if size <= limit {
		return pass(td)
	}
	first, second := spansOf(td, 0, spans/2), spansOf(td, spans/2, spans)
	if sizer.TracesSize(first)+sizer.TracesSize(second) > size+size/4 {
		return pass(td)
	}
	if err := eachPart(first, 0, limit, pass); err != nil {
		return err
	}
	return eachPart(second, 0, limit, pass)
}

// spansOf returns a copy of the spans of a request from one place to another one.
func spansOf(td ptrace.Traces, from, to int) ptrace.Traces {
	part, at := ptrace.NewTraces(), 0
	for _, rs := range td.ResourceSpans().All() {
		var ofResource ptrace.ScopeSpansSlice
		begun := false
		for _, ss := range rs.ScopeSpans().All() {
			spans := ss.Spans()
			low, high := max(from-at, 0), min(to-at, spans.Len())
			at += spans.Len()
			if low >= high {
				continue
			}
			if !begun {
				copied := part.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(copied.Resource())
				copied.SetSchemaUrl(rs.SchemaUrl())
				ofResource, begun = copied.ScopeSpans(), true
			}
			copied := ofResource.AppendEmpty()
			ss.Scope().CopyTo(copied.Scope())
			copied.SetSchemaUrl(ss.SchemaUrl())
			copied.Spans().EnsureCapacity(high - low)
			for i := low; i < high; i++ {
				spans.At(i).CopyTo(copied.Spans().AppendEmpty())
			}
		}
	}
	return part
}
