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
	ancestors := jsontree.Array{}
	for _, a := range f.Ancestors {
		ancestors = append(ancestors, redactor.Tree("trace.ancestors", jsontree.From(a)))
	}
	tree := jsontree.Of(
		"schema", schema,
		"complete", f.Complete,
		"truncated", false,
		"trigger", f.Trigger,
		"training", redactor.Tree("trace.training", collect(f, isTraining)),
		"resource", redactor.Tree("trace.resource", f.Resource),
		"span", redactor.Tree("trace.span", jsontree.From(f.Span)),
		"ancestors", ancestors,
		"siblings", jsontree.Array{},
		"others", jsontree.Array{},
		"omitted_spans", jsontree.Int(int64(f.OmittedSpans+len(f.Siblings)+len(f.Others))),
		"payload_from", redactor.Tree("trace.payload_from", jsontree.From(f.PayloadFrom)),
		"rank", redactor.Text("trace.rank", f.Rank),
	)
	tree = append(tree, jsontree.OfKnown("content", withheld(f))...)
	text := jsontree.EncodeIndent(tree)
	if len(text) <= maxTraceBytes {
		return fillUp(tree, text, f, redactor)
	}
	tree.Set("truncated", true)
	tree.Set("complete", false)
	for _, less := range jsontree.Of(
		"ancestors", jsontree.Array{}, "training", jsontree.Object{}, "resource", jsontree.Object{},
		"span", jsontree.Of("trace_id", f.Span.TraceID, "span_id", f.Span.SpanID),
	) {
		tree.Set(less.Key, less.Value)
		if text = jsontree.EncodeIndent(tree); len(text) <= maxTraceBytes {
			break
		}
	}
	return text
}

// fillUp adds the failed siblings and then the other spans, the last ones
// first, as far as there is room. text is the tree without them.
func fillUp(tree jsontree.Object, text []byte, f *failure.Failure, redactor *redact.Redactor) []byte {
	room, omitted := maxTraceBytes-len(text), f.OmittedSpans
	add := func(key string, spans []failure.Span) {
		kept := jsontree.Array{}
		for _, s := range slices.Backward(spans) {
			one := redactor.Tree("trace."+key, jsontree.From(s))
			// The indentation of the list comes to a few bytes a line.
			if room -= indented(one); room < 0 {
				break
			}
			kept = append(kept, one)
		}
		omitted += len(spans) - len(kept)
		slices.Reverse(kept)
		tree.Set(key, kept)
	}
	add("siblings", f.Siblings)
	add("others", f.Others)
	tree.Set("omitted_spans", jsontree.Int(int64(omitted)))
	tree.Set("truncated", omitted > 0)
	return jsontree.EncodeIndent(tree)
}

// indented estimates from above how long a span is in a list of the file.
func indented(tree any) int {
	text := jsontree.EncodeIndent(tree)
	return len(text) + 4*(1+bytes.Count(text, []byte("\n")))
}
