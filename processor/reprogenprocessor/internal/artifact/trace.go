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
		"ancestors", trees("trace.ancestors", f.Ancestors, redactor),
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
	for _, part := range [...]struct {
		key  string
		less any
	}{
		{"ancestors", jsontree.Array{}},
		{"training", jsontree.Object{}},
		{"resource", jsontree.Object{}},
	} {
		if part.key == "ancestors" {
			tree.Set("complete", false)
		}
		tree.Set(part.key, part.less)
		if text = jsontree.EncodeIndent(tree); len(text) <= maxTraceBytes {
			return text
		}
	}
	tree.Set("span", jsontree.Of("trace_id", f.Span.TraceID, "span_id", f.Span.SpanID))
	return jsontree.EncodeIndent(tree)
}

// fillUp adds the failed siblings and then the other spans, the last ones
// first, as far as there is room. text is the tree without them.
func fillUp(tree jsontree.Object, text []byte, f *failure.Failure, redactor *redact.Redactor) []byte {
	room := maxTraceBytes - len(text)
	omitted := f.OmittedSpans
	for _, part := range [...]struct {
		key   string
		spans []failure.Span
	}{{"siblings", f.Siblings}, {"others", f.Others}} {
		first := len(part.spans)
		var kept jsontree.Array
		for first > 0 {
			one := redactor.Tree("trace."+part.key, jsontree.From(part.spans[first-1]))
			// The indentation of the list comes to a few bytes a line.
			if room -= indented(one); room < 0 {
				break
			}
			kept = append(kept, one)
			first--
		}
		omitted += first
		slices.Reverse(kept)
		if kept != nil {
			tree.Set(part.key, kept)
		}
	}
	tree.Set("omitted_spans", jsontree.Int(int64(omitted)))
	tree.Set("truncated", omitted > 0)
	return jsontree.EncodeIndent(tree)
}

// indented estimates from above how long a span is in a list of the file.
func indented(tree any) int {
	text := jsontree.EncodeIndent(tree)
	return len(text) + 4*(1+bytes.Count(text, []byte("\n")))
}

// trees has the tree of each of a list.
func trees[T any](where string, list []T, redactor *redact.Redactor) jsontree.Array {
	out := jsontree.Array{}
	for _, one := range list {
		out = append(out, redactor.Tree(where, jsontree.From(one)))
	}
	return out
}
