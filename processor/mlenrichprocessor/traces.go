package mlenrichprocessor

import (
	"cmp"
	"context"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/run"
)

// spanState is a span between its reading and its writing.
type spanState struct {
	span ptrace.Span
	// resource is the index of the span's resource in the batch.
	resource int
	// first and end delimit the span's facts in batch.kept.
	first, end int
}

// processTraces reads each span, then finds the resources' runs by what their
// spans revealed, then correlates the spans, and then writes what there is to
// add.
func (e *enricher) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	b := batches.Get().(*batch)
	defer b.free()

	for i, rs := range td.ResourceSpans().All() {
		r := e.readResource(rs.Resource().Attributes(), b)
		systems := r.facts.Systems
		found := systems
		samplesPerStep, _ := r.facts.DoubleAt(vocabulary.SlotSamplesPerStep)
		for _, ss := range rs.ScopeSpans().All() {
			known := systems | e.reader.Scope(ss.Scope().Name())
			r.printed = known.Has(table.Printed)
			b.keys.SetScope(ss.Scope().Name())
			for _, span := range ss.Spans().All() {
				found |= e.readSpan(span, known, samplesPerStep, i, b)
				if b.facts.TextAt(vocabulary.SlotPhase) == mlattr.PhaseBatch {
					r.trains, r.steps = true, true
				}
			}
		}
		e.store.clients.Recognise(r.key, found)
	}
	for i, rs := range td.ResourceSpans().All() {
		r := &b.resources[i]
		e.settleRun(rs.Resource().Attributes(), r)
		b.keys.AddResource(r.run.ID, r.run.Inferred, r.process.Service)
	}
	b.keys.Correlate(e.store.keys, func(resource int) string { return b.resources[resource].process.ExactKey() })
	e.writeSpans(b)
	e.dropPrinted(ctx, td, b)
	e.store.count(ctx, b)
	if td.ResourceSpans().Len() == 0 && len(b.resources) > 0 {
		return td, processorhelper.ErrSkipProcessingData
	}
	return td, nil
}

// dropPrinted removes the spans of printed lines whose program sends spans of its steps.
// Failures stay: a program that is killed sends none.
func (e *enricher) dropPrinted(ctx context.Context, td ptrace.Traces, b *batch) {
	var dropped int64
	i := 0
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		r := &b.resources[i]
		if i++; !r.printed || !e.store.trainers.SendSteps(r.run.ID) {
			return false
		}
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
			ss.Spans().RemoveIf(func(span ptrace.Span) bool {
				if end := spanfact.EndIn(span.Attributes()); end.Failed(span) {
					return false
				}
				dropped++
				return true
			})
			return ss.Spans().Len() == 0
		})
		return rs.ScopeSpans().Len() == 0
	})
	if dropped > 0 {
		e.store.telemetry.ProcessorMlEnrichPrintedSpansDropped.Add(ctx, dropped, metric.WithAttributes(e.store.processor))
	}
}

// readSpan reads one span and keeps the facts that will be written.
func (e *enricher) readSpan(span ptrace.Span, known vocabulary.System, samplesPerStep float64, resource int, b *batch) vocabulary.System {
	f := &b.facts
	e.reader.Span(known, span, f)
	b.rejected += f.Rejected
	settleRequest(f, span)
	if end := spanfact.EndOf(f); end.LoaderEnded(span) {
		f.SetBool(vocabulary.SlotEpochEnd, true)
	}
	rate.Derive(f, span, samplesPerStep, b.skipped)
	b.keys.Read(f, span, resource)
	first := len(b.kept)
	b.kept = e.appendWritten(b.kept, f)
	b.spans = append(b.spans, spanState{span: span, resource: resource, first: first, end: len(b.kept)})
	return f.Systems
}

// writeSpans adds to the spans what was read, derived and inherited.
func (e *enricher) writeSpans(b *batch) {
	var seen, traceRun struct {
		run      string
		resource int
		trace    pcommon.TraceID
	}
	for i := range b.spans {
		s := &b.spans[i]
		r := &b.resources[s.resource]
		if own := b.keys.OwnRun(i); own != "" && (own != seen.run || s.resource != seen.resource) {
			seen.run, seen.resource = own, s.resource
			e.store.gpus.SeeRun(&r.located, own)
		}
		b.added = b.keys.Additions(b.added[:0], i)
		if r.run.PerTrace && !b.keys.HasRun(i) {
			if trace := b.keys.Trace(i); traceRun.run == "" || trace != traceRun.trace || s.resource != traceRun.resource {
				traceRun.trace, traceRun.resource = trace, s.resource
				traceRun.run = run.OfTrace(&r.process, trace)
			}
			b.added = append(b.added,
				vocabulary.Fact{Key: mlattr.RunID, Kind: table.KindText, Text: traceRun.run},
				vocabulary.Fact{Key: mlattr.RunInferred, Kind: table.KindBool, Bool: true})
		}
		putAll(s.span.Attributes(), b.kept[s.first:s.end], len(b.added))
		putAll(s.span.Attributes(), b.added, 0)
	}
}

// settleRequest adds to the facts of a span that states an operation of a model what
// its client leaves to be concluded: that it only prepares a request, and that the
// request failed though the status is no error.
func settleRequest(f *vocabulary.Facts, span ptrace.Span) {
	if !vocabulary.AsksModel(f.TextAt(vocabulary.SlotGenAIOperationName)) {
		return
	}
	reason := f.TextAt(vocabulary.SlotGenAIFinishReasons)
	if strings.EqualFold(reason, "error") {
		f.SetText(vocabulary.SlotErrorType, mlattr.Other)
		return
	}
	answered := f.At(vocabulary.SlotGenAIOutputTokens) != nil || reason != ""
	if !answered && f.At(vocabulary.SlotRequestCounted) == nil && prepares(span.Name()) {
		f.SetBool(vocabulary.SlotRequestCounted, false)
	}
	// A request with an answer has handled its exceptions.
	if end := spanfact.EndOf(f); answered || end.Failed(span) {
		return
	}
	if class, raised := spanfact.ExceptionClass(span); raised {
		f.SetText(vocabulary.SlotErrorType, cmp.Or(class, mlattr.Other))
	}
}

// prepares reports whether a span is named after a method that prepares a request,
// such as OpenAI._prepare_chat_with_tools.
func prepares(name string) bool {
	method := strings.TrimLeft(name[strings.LastIndexByte(name, '.')+1:], "_")
	return strings.HasPrefix(method, "prepare")
}
