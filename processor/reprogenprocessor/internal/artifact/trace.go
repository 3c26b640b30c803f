package artifact

import (
	"bytes"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// traceOf returns trace.json: the failed span, the spans above it, the other
// failed spans of the trace, and further ones. If that is too long, the last
// go first, and the span's own values at the end. The keys of the training are
// gathered from the span, those above it and the resource.
func traceOf(f *failure.Failure, redactor *redact.Redactor) []byte {
	tree := jsontree.Of(
		"schema", schema,
		"complete", f.Complete,
		"truncated", false,
		"trigger", f.Trigger,
		"training", redactor.Tree("trace.training", collect(f, isTraining)),
		"resource", redactor.Tree("trace.resource", f.Resource),
		"span", redactor.Tree("trace.span", jsontree.From(f.Span)),
		"ancestors", jsontree.Array{},
		"siblings", jsontree.Array{},
		"others", jsontree.Array{},
		"omitted_spans", jsontree.Int(int64(f.OmittedSpans)),
		"payload_from", redactor.Tree("trace.payload_from", jsontree.From(f.PayloadFrom)),
		"rank", redactor.Text("trace.rank", f.Rank),
	)
	tree = append(tree, jsontree.OfKnown("content", f.Content)...)
	room := maxTraceBytes - len(jsontree.EncodeIndent(tree))
	cut := room < 0
	for _, less := range jsontree.Of(
		"training", jsontree.Object{}, "resource", jsontree.Object{},
		"span", jsontree.Of("trace_id", f.Span.TraceID, "span_id", f.Span.SpanID),
	) {
		if room < 0 {
			tree.Set(less.Key, less.Value)
			room = maxTraceBytes - len(jsontree.EncodeIndent(tree))
		}
	}
	// fill adds spans as far as there is room, and returns how many there is none for.
	fill := func(key string, spans []failure.Span) (left int) {
		kept := jsontree.Array{}
		for _, s := range spans {
			one := redactor.Tree("trace."+key, jsontree.From(s))
			// The indentation of the list comes to a few bytes a line.
			text := jsontree.EncodeIndent(one)
			if room -= len(text) + 4*(1+bytes.Count(text, []byte("\n"))); room < 0 {
				break
			}
			kept = append(kept, one)
		}
		tree.Set(key, kept)
		return len(spans) - len(kept)
	}
	above := fill("ancestors", f.Ancestors)
	omitted := f.OmittedSpans
	// Of these the last ones stay.
	for _, list := range [...]struct {
		key   string
		spans []failure.Span
	}{{"siblings", f.Siblings}, {"others", f.Others}} {
		last := slices.Clone(list.spans)
		slices.Reverse(last)
		omitted += fill(list.key, last)
		slices.Reverse(tree.Array(list.key))
	}
	tree.Set("omitted_spans", jsontree.Int(int64(omitted)))
	tree.Set("truncated", cut || above > 0 || omitted > 0)
	tree.Set("complete", f.Complete && !cut && above == 0)
	return jsontree.EncodeIndent(tree)
}
