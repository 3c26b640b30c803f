package mlenrichprocessor

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxEvents is how many events of a span are looked at.
const maxEvents = 16

// spanState is a span between its reading and its resolution.
type spanState struct {
	attrs pcommon.Map
	// resource is the place of the span's resource in the batch.
	resource int
	// inherited is what an ml_enrich before this one let the span inherit.
	inherited origins
	// foreign is true where ml.correlation.source is by another hand.
	foreign bool
	// phased is true where the span has a phase, its own or inherited.
	phased bool
	// conflicted is true where the span has a conflict mark.
	conflicted bool
}

// batch is the working memory of one Consume call.
type batch struct {
	facts     mlattr.Facts
	resources []resource
	nodes     []node
	spans     []spanState
	left      skipped
	rejected  int
}

var batches = sync.Pool{New: func() any { return &batch{left: make(skipped)} }}

// free gives the memory back, without any reference to what was processed.
func (b *batch) free() {
	b.facts.Reset()
	clear(b.resources)
	clear(b.nodes)
	clear(b.spans)
	clear(b.left)
	b.resources, b.nodes, b.spans, b.rejected = b.resources[:0], b.nodes[:0], b.spans[:0], 0
	batches.Put(b)
}

// processTraces enriches each span from what it says, then the resources from
// what their spans gave away, then the spans from each other.
func (e *enricher) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	b := batches.Get().(*batch)
	defer b.free()

	for i, rs := range td.ResourceSpans().All() {
		b.resources = append(b.resources, resource{})
		r := &b.resources[i]
		e.readResource(rs.Resource().Attributes(), r)
		b.rejected += r.facts.Rejected
		found := r.facts.Systems
		for _, ss := range rs.ScopeSpans().All() {
			known := r.facts.Systems | e.reader.Scope(ss.Scope().Name())
			for _, span := range ss.Spans().All() {
				found |= e.readSpan(span, known, i, b)
			}
		}
		e.store.recognise(r.key, found)
	}
	// Only now is it known of every resource what its process is: the same
	// process may occur in several.
	for i, rs := range td.ResourceSpans().All() {
		r := &b.resources[i]
		e.settleRun(rs.Resource().Attributes(), r, e.store.recognise(r.key, 0))
	}
	for i := range b.nodes {
		r := &b.resources[b.spans[i].resource]
		b.nodes[i].resourceRun, b.nodes[i].resourceInferred = r.run.id, r.run.inferred
	}
	resolve(b.nodes, e.store)
	e.writeKeys(b)
	e.count(ctx, b.left, b.rejected)
	return td, nil
}

// readSpan enriches one span from itself and notes its keys.
func (e *enricher) readSpan(span ptrace.Span, known mlattr.System, resource int, b *batch) mlattr.System {
	f := &b.facts
	e.reader.Span(known, span, f)
	failed := span.Status().Code() == ptrace.StatusCodeError
	derive(f, uint64(span.StartTimestamp()), uint64(span.EndTimestamp()), failed, b.left)
	if failed && f.Systems&mlattr.TorchTel != 0 && f.Text(mlattr.Phase) == mlattr.PhaseDataLoad && stopsIteration(span) {
		f.SetBool(mlattr.EpochEnd, true)
	}
	b.rejected += f.Rejected
	attrs := span.Attributes()
	state := spanState{attrs: attrs, resource: resource}
	state.inherited, state.foreign = readOrigins(f)
	settleTrainingRun(f, &state.inherited)
	e.write(attrs, f, 0)

	n := node{trace: span.TraceID(), id: span.SpanID(), parent: span.ParentSpanID()}
	state.conflicted = f.Find(mlattr.CorrelationConflict) != nil
	for fact := range f.All() {
		if fact.Key == mlattr.Phase {
			state.phased = true
			n.phase = f.Text(mlattr.Phase)
			continue
		}
		for k := range keyInferred {
			if fact.Key == keyNames[k] {
				n.present[k] = true
				if state.inherited[k] == fromNowhere {
					n.own[k] = f.Text(fact.Key)
				}
			}
		}
	}
	if inferred := f.Find(mlattr.RunInferred); inferred != nil {
		n.present[keyInferred] = true
		if inferred.Bool {
			// An inferred run is the span's, and nobody else's.
			n.own[keyRun] = ""
		}
	}
	b.nodes = append(b.nodes, n)
	b.spans = append(b.spans, state)
	return f.Systems
}

// settleTrainingRun makes a fine-tuning service's training run the run of the
// span, before any other id. One that was inherited came with its run.
func settleTrainingRun(f *mlattr.Facts, inherited *origins) {
	training := f.Text(mlattr.TrainingRunID)
	if training == "" || inherited[keyTrainingRun] != fromNowhere {
		return
	}
	if id := f.Find(mlattr.RunID); id != nil && !id.Own {
		id.Text = training
		return
	}
	f.SetText(mlattr.RunID, training)
}

// stopsIteration says whether a failed span failed by Python's StopIteration,
// by which an iterator says that it is at its end.
func stopsIteration(span ptrace.Span) bool {
	const end = "StopIteration"
	if strings.HasPrefix(span.Status().Message(), end) {
		return true
	}
	for i, event := range span.Events().All() {
		if i >= maxEvents {
			break
		}
		if class, ok := event.Attributes().Get("exception.type"); ok && class.Type() == pcommon.ValueTypeStr && class.Str() == end {
			return true
		}
	}
	return false
}

// writeKeys adds what the spans inherit.
func (e *enricher) writeKeys(b *batch) {
	var lastTrace [16]byte
	var lastRun string
	lastResource := -1
	for i := range b.nodes {
		n, s := &b.nodes[i], &b.spans[i]
		r := &b.resources[s.resource]
		if n.own[keyRun] != "" && r.process.host != "" && r.process.service != "" && n.own[keyRun] != lastRun {
			lastRun = n.own[keyRun]
			e.store.seeRun(lastRun, place{host: r.process.host, service: r.process.service})
		}
		if n.own[keyRun] != "" && n.own[keyTrainingRun] == "" && n.conflict == "" &&
			n.resourceRun != "" && !n.resourceInferred && n.resourceRun != n.own[keyRun] {
			n.conflict = mlattr.RunID
		}
		added := s.writeInherited(n)
		if n.conflict != "" && !s.conflicted {
			s.attrs.PutStr(mlattr.CorrelationConflict, n.conflict)
		}
		if added {
			s.attrs.PutStr(mlattr.CorrelationSource, s.inherited.String())
		}
		if r.run.perTrace && !n.present[keyRun] && !n.present[keyInferred] && n.from[keyRun] == fromNowhere && n.trace != ([16]byte{}) {
			if n.trace != lastTrace || s.resource != lastResource {
				lastTrace, lastResource = n.trace, s.resource
				r.traceRun = traceRun(r.process, n.trace)
			}
			s.attrs.PutStr(mlattr.RunID, r.traceRun)
			s.attrs.PutBool(mlattr.RunInferred, true)
		}
	}
}

// writeInherited adds the inherited keys that the span lacks, notes where
// they came from, and says whether there were any. A span whose mark is by
// another hand gets none: it could not be said where they are from.
func (s *spanState) writeInherited(n *node) bool {
	if s.foreign {
		return false
	}
	added := false
	for k := range keyInferred {
		if n.from[k] == fromNowhere || n.present[k] {
			continue
		}
		// A conversation comes with its session: alone it would later be
		// taken for one.
		if k == keyConversation && !n.present[keySession] && n.from[keySession] == fromNowhere {
			continue
		}
		if !added {
			s.attrs.EnsureCapacity(s.attrs.Len() + 4)
		}
		s.attrs.PutStr(keyNames[k], n.keys[k])
		s.inherited[k] = n.from[k]
		added = true
		if k == keyRun && n.keys[keyInferred] != "" && !n.present[keyInferred] {
			s.attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	if n.inheritedPhase != "" && !s.phased {
		s.attrs.PutStr(mlattr.Phase, n.inheritedPhase)
		s.inherited[originPhase] = fromParent
		added = true
	}
	return added
}
