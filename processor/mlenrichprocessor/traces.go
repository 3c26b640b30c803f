package mlenrichprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/run"
)

var slotEpochEnd = vocabulary.SlotOf(mlattr.EpochEnd)

// spanState is a span between its reading and its writing.
type spanState struct {
	span ptrace.Span
	// resource is the index of the span's resource in the batch.
	resource int
	// first and end delimit the span's facts in batch.kept.
	first, end int
	critical
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
		samplesPerStep := rate.SamplesPerStep(&r.facts)
		for _, ss := range rs.ScopeSpans().All() {
			known := systems | e.reader.Scope(ss.Scope().Name())
			b.keys.SetScope(e.store.keys, ss.Scope().Name())
			for _, span := range ss.Spans().All() {
				found |= e.readSpan(span, known, samplesPerStep, i, b)
			}
		}
		e.store.clients.Recognise(r.key, found)
	}
	for i, rs := range td.ResourceSpans().All() {
		r := &b.resources[i]
		e.settleRun(rs.Resource().Attributes(), r)
		b.keys.AddResource(e.store.keys, r.run.ID, r.run.Inferred, r.process.Service)
	}
	b.keys.Correlate(e.store.keys, func(resource int) string { return b.resources[resource].process.ExactKey() })
	if e.config.CriticalPath {
		b.findCritical(e.store.keys)
	}
	e.store.waiting.SpansArrived(b.keys.Traces())
	e.writeSpans(b)
	e.count(ctx, b)
	return td, nil
}

// readSpan reads one span and keeps the facts that will be written.
func (e *enricher) readSpan(span ptrace.Span, known vocabulary.System, samplesPerStep float64, resource int, b *batch) vocabulary.System {
	f := &b.facts
	e.reader.Span(known, span, f)
	b.rejected += f.Rejected
	settleRequest(f, span)
	if end := spanfact.EndOf(f); end.LoaderEnded(span) {
		f.SetBool(slotEpochEnd, true)
	}
	rate.Derive(f, span, samplesPerStep, b.skipped)
	b.keys.Read(f, span, resource)
	first := len(b.kept)
	for fact := range f.All() {
		if e.writes(fact) {
			b.kept = append(b.kept, *fact)
		}
	}
	b.spans = append(b.spans, spanState{
		span: span, resource: resource, first: first, end: len(b.kept), critical: readCritical(f),
	})
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
		facts := b.kept[s.first:s.end]
		var added correlate.Additions
		if !b.keys.Plain(i) {
			if own := b.keys.OwnRun(i); own != "" && (own != seen.run || s.resource != seen.resource) {
				seen.run, seen.resource = own, s.resource
				e.store.gpus.SeeRun(&r.located, own)
			}
			added = b.keys.Additions(i)
		} else if len(facts) == 0 && !r.run.PerTrace && !s.complete {
			continue
		}
		total := len(facts) + added.Len() + s.additions()
		ofTrace := r.run.PerTrace && !b.keys.HasRun(i)
		if ofTrace {
			total += 2
		}
		if total == 0 && !s.marked {
			continue
		}
		attrs := s.span.Attributes()
		attrs.EnsureCapacity(attrs.Len() + total)
		for j := range facts {
			e.put(attrs, &facts[j])
		}
		added.Write(attrs)
		s.write(attrs)
		if !ofTrace {
			continue
		}
		if trace := b.keys.Trace(i); traceRun.run == "" || trace != traceRun.trace || s.resource != traceRun.resource {
			traceRun.trace, traceRun.resource = trace, s.resource
			traceRun.run = run.OfTrace(&r.process, trace)
		}
		attrs.PutStr(mlattr.RunID, traceRun.run)
		attrs.PutBool(mlattr.RunInferred, true)
	}
}
