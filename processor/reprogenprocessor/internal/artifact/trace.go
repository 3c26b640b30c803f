package artifact

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// traceOf returns trace.json: the failed span and what is known above it. If
// that is too long, the ancestors go first and the span's own values next.
func traceOf(f *failure.Failure, redactor *redact.Redactor) []byte {
	span := redactor.Tree("trace.span", spanTree(f.Span))
	resource := redactor.Tree("trace.resource", f.Resource)
	above := jsontree.Array{}
	for _, a := range f.Ancestors {
		above = append(above, redactor.Tree("trace.ancestors", spanTree(a)))
	}
	tree := jsontree.Of(
		"schema", schema,
		"complete", f.Complete,
		"truncated", false,
		"resource", resource,
		"span", span,
		"ancestors", above,
	)
	text := jsontree.EncodeIndent(tree)
	if len(text) <= maxTraceBytes {
		return text
	}
	tree.Set("complete", false)
	tree.Set("truncated", true)
	tree.Set("ancestors", jsontree.Array{})
	if text = jsontree.EncodeIndent(tree); len(text) <= maxTraceBytes {
		return text
	}
	tree.Set("resource", jsontree.Object{})
	tree.Set("span", jsontree.Of("trace_id", f.Span.TraceID, "span_id", f.Span.SpanID))
	return jsontree.EncodeIndent(tree)
}

func spanTree(s failure.Span) jsontree.Object {
	events := jsontree.Array{}
	for _, e := range s.Events {
		events = append(events, jsontree.Of(
			"name", e.Name, "time", timeText(e.Time), "attributes", e.Attributes,
		))
	}
	links := jsontree.Array{}
	for _, l := range s.Links {
		links = append(links, jsontree.Of("trace_id", l.TraceID, "span_id", l.SpanID))
	}
	return jsontree.Of(
		"name", s.Name,
		"kind", s.Kind,
		"trace_id", s.TraceID,
		"span_id", s.SpanID,
		"parent_span_id", s.ParentID,
		"scope", s.Scope,
		"start", timeText(s.Start),
		"end", timeText(s.End),
		"status", jsontree.Of("code", s.Status, "message", s.StatusMessage),
		"attributes", s.Attributes,
		"events", events,
		"links", links,
		"omitted", jsontree.Int(int64(s.Omitted)),
	)
}
