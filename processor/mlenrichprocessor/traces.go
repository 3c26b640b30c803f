package mlenrichprocessor

import (
	"context"
	"math/bits"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxEvents is how many events of a span are looked at.
const maxEvents = 16

// spanState is a span between its reading and its writing.
type spanState struct {
	attrs pcommon.Map
	// resource is the place of the span's resource in the batch.
	resource int32
	// first and end are the places of the span's facts in batch.kept.
	first, end int32
	// inherited is what an ml_enrich before this one let the span inherit.
	inherited origins
	// foreign is true where ml.correlation.source is by another hand.
	foreign bool
	// phased is true where the span has a phase, its own or inherited.
	phased bool
	// conflicted is true where the span has a conflict mark.
	conflicted bool
	// undated is the span's place in batch.undated, plus one, where it is of an
	// epoch that it does not name.
	undated int32
	usage   usage
}

// batch is the working memory of one Consume call.
type batch struct {
	facts     mlattr.Facts
	resources []resource
	spans     []spanState
	// kept are the facts that will be written, of all spans. Writing waits
	// until it is known what else a span gets, so that its attributes move
	// at most once.
	kept []mlattr.Fact
	// tokens are the points of metrics of which rates are made.
	tokens []tokenPoint
	// exemplars are those of points whose trace may be known.
	exemplars []exemplarState

	left     skipped
	rejected int
	// unsafe is what is wrong with the points of metrics.
	unsafe unsafePoints
	// timedSpans are what epochs are found by.
	timedSpans timedSpans
	// marks and processKeys stay from batch to batch.
	marks       marks
	processKeys processKeys

	resolution
}

var batches = sync.Pool{New: func() any {
	return &batch{left: make(skipped), unsafe: make(unsafePoints)}
}}

// free gives the memory back, without any reference to what was processed.
func (b *batch) free() {
	if cap(b.spans) > huge || cap(b.kept) > 16*huge || cap(b.exemplars) > huge {
		return
	}
	b.facts.Reset()
	for i := range b.resources {
		b.resources[i].facts.Reset()
		b.resources[i] = resource{facts: b.resources[i].facts}
	}
	clear(b.spans)
	clear(b.kept)
	clear(b.tokens)
	clear(b.exemplars)
	clear(b.left)
	clear(b.unsafe)
	b.resources, b.spans, b.kept, b.tokens, b.rejected = b.resources[:0], b.spans[:0], b.kept[:0], b.tokens[:0], 0
	b.exemplars = b.exemplars[:0]
	b.timedSpans.reset()
	b.reset()
	batches.Put(b)
}

// addResource returns a resource more, with the memory of an earlier one.
func (b *batch) addResource() *resource {
	if n := len(b.resources); n < cap(b.resources) {
		b.resources = b.resources[:n+1]
	} else {
		b.resources = append(b.resources, resource{})
	}
	r := &b.resources[len(b.resources)-1]
	r.keys = &b.processKeys
	return r
}

// processTraces reads each span, then finds the resources' runs by what their
// spans gave away, then lets the spans inherit from each other, and then
// writes what there is to add.
func (e *enricher) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	b := batches.Get().(*batch)
	defer b.free()

	for i, rs := range td.ResourceSpans().All() {
		r := b.addResource()
		e.readResource(rs.Resource().Attributes(), r)
		b.rejected += r.facts.Rejected
		systems := r.facts.Systems
		found := systems
		for _, ss := range rs.ScopeSpans().All() {
			known := systems | e.reader.Scope(ss.Scope().Name())
			rules := e.ratesOf(ss.Scope().Name())
			rules.samplesPerStep, _ = r.facts.DoubleAt(slotSamplesPerStep)
			for _, span := range ss.Spans().All() {
				found |= e.readSpan(span, known, rules, int32(i), b)
			}
		}
		e.store.recognise(r.key, found)
	}
	// Only now is it known of every resource what its process is: the same
	// process may occur in several.
	for i, rs := range td.ResourceSpans().All() {
		r := &b.resources[i]
		e.settleRun(rs.Resource().Attributes(), r, e.store.recognise(r.key, 0))
		r.runSymbol = b.texts.of(keyRun, r.run.id)
		r.service = e.store.hashOf(r.process.service)
	}
	for i := range b.nodes {
		r := &b.resources[b.spans[i].resource]
		b.nodes[i].resourceRun, b.nodes[i].resourceInferred = r.runSymbol, r.run.inferred
		b.nodes[i].service = r.service
	}
	b.resolve(e.store)
	e.store.waiting.spansCame(b.traces)
	b.bindEpochs(e.store)
	e.writeSpans(b)
	e.count(ctx, b.left, b.rejected)
	return td, nil
}

// readSpan reads one span and notes its keys.
func (e *enricher) readSpan(span ptrace.Span, known mlattr.System, rules rateRules, resource int32, b *batch) mlattr.System {
	f := &b.facts
	e.reader.Span(known, span, f)
	failed := span.Status().Code() == ptrace.StatusCodeError
	derive(f, spanTimes{uint64(span.StartTimestamp()), uint64(span.EndTimestamp()), failed}, rules, b.left)
	if failed && f.Systems&mlattr.TorchTel != 0 && f.TextAt(slotPhase) == mlattr.PhaseDataLoad && stopsIteration(span) {
		f.SetBool(slotEpochEnd, true)
	}
	b.rejected += f.Rejected
	b.spans = append(b.spans, spanState{attrs: span.Attributes(), resource: resource, first: int32(len(b.kept))})
	state := &b.spans[len(b.spans)-1]
	state.inherited, state.foreign = readOrigins(f)
	settleTrainingRun(f, &state.inherited)
	for fact := range f.All() {
		if e.writes(fact) {
			b.kept = append(b.kept, *fact)
		}
	}
	state.end = int32(len(b.kept))

	state.usage = usageOf(f, span.Name())
	b.nodes = append(b.nodes, node{trace: span.TraceID(), id: span.SpanID(), parent: span.ParentSpanID(), uses: state.usage.reported})
	n := &b.nodes[len(b.nodes)-1]
	n.server = n.uses && answers(span)
	n.answer = b.texts.of(textAnswer, state.usage.answer)
	state.conflicted = f.At(slotConflict) != nil
	state.phased = f.At(slotPhase) != nil
	n.phase = b.texts.of(int(originPhase), f.TextAt(slotPhase))
	for k := range keyInferred {
		if f.At(keySlots[k]) == nil {
			continue
		}
		n.present[k] = true
		if state.inherited[k] == fromNowhere {
			n.own[k] = b.texts.of(k, f.TextAt(keySlots[k]))
		}
	}
	if inferred := f.At(keySlots[keyInferred]); inferred != nil {
		n.present[keyInferred] = true
		if inferred.Bool {
			// An inferred run is the span's, and nobody else's.
			n.own[keyRun] = 0
		}
	}
	if f.Systems&mlattr.FX != 0 {
		state.undated = b.timedSpans.readTime(f, n, state, period{uint64(span.StartTimestamp()), uint64(span.EndTimestamp())})
	}
	if span.Links().Len() > 0 {
		b.readLinks(span)
	}
	return f.Systems
}

// ratesOf is what holds for the rates of a scope's spans.
func (e *enricher) ratesOf(scope string) rateRules {
	rules := rateRules{shortest: e.minDuration}
	for _, beginning := range e.withoutCache {
		rules.withoutCache = rules.withoutCache || strings.HasPrefix(scope, beginning)
	}
	return rules
}

// settleTrainingRun makes a fine-tuning service's training run the run of the
// span, before any other id. One that was inherited came with its run.
func settleTrainingRun(f *mlattr.Facts, inherited *origins) {
	training := f.TextAt(keySlots[keyTrainingRun])
	if training == "" || inherited[keyTrainingRun] != fromNowhere {
		return
	}
	if id := f.At(keySlots[keyRun]); id != nil && !id.Own {
		id.Text = training
		return
	}
	f.SetText(keySlots[keyRun], training)
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

// writeSpans adds to the spans what was read, derived and inherited.
func (e *enricher) writeSpans(b *batch) {
	var seen symbol
	var seenOf int32
	traceRun := struct {
		trace    [16]byte
		resource int32
		id       string
	}{resource: nowhere}
	for i := range b.nodes {
		n, s := &b.nodes[i], &b.spans[i]
		r := &b.resources[s.resource]
		own := n.own[keyRun]
		if own != 0 && (own != seen || s.resource != seenOf) {
			seen, seenOf = own, s.resource
			e.seeSpanRun(b.texts.text(own), r)
		}
		if own != 0 && n.own[keyTrainingRun] == 0 && n.conflict == 0 &&
			n.resourceRun != 0 && !n.resourceInferred && n.resourceRun != own {
			n.conflict = keyRun + 1
		}
		if s.first == s.end && n.plain() && !s.usage.countable && !r.run.perTrace && s.undated == 0 {
			continue
		}
		more := additions{
			conflict: n.conflict != 0 && !s.conflicted,
			below:    s.usage.countable && (n.covered || s.usage.wrapper || n.repeated),
			side:     n.uses && !s.usage.sided && (n.server || n.client),
			traceRun: r.run.perTrace && !n.present[keyRun] && !n.present[keyInferred] && n.from[keyRun] == fromNowhere && n.trace != ([16]byte{}),
		}
		if s.undated != 0 && b.timedSpans.found[s.undated-1] {
			more.epoch = true
			s.inherited[originEpoch] = fromTime
		}
		s.inherit(n, &more)
		if more.traceRun && (n.trace != traceRun.trace || s.resource != traceRun.resource) {
			traceRun.trace, traceRun.resource = n.trace, s.resource
			traceRun.id = traceRunID(r.process, n.trace)
		}

		facts := b.kept[s.first:s.end]
		total := len(facts) + more.count()
		if total == 0 {
			continue
		}
		s.attrs.EnsureCapacity(s.attrs.Len() + total)
		for j := range facts {
			e.put(s.attrs, &facts[j])
		}
		for k := range keyInferred {
			if more.keys&(1<<k) != 0 {
				s.attrs.PutStr(keyNames[k], b.texts.text(n.keys[k]))
			}
			if k == keyRun && more.inferred {
				s.attrs.PutBool(mlattr.RunInferred, true)
			}
		}
		if more.phase {
			s.attrs.PutStr(mlattr.Phase, b.texts.text(n.inheritedPhase))
		}
		if more.epoch {
			s.attrs.PutInt(mlattr.Epoch, b.timedSpans.number[s.undated-1])
		}
		if more.conflict {
			s.attrs.PutStr(mlattr.CorrelationConflict, keyNames[n.conflict-1])
		}
		if more.below {
			s.attrs.PutBool(mlattr.UsageCounted, false)
		}
		if more.side {
			side := mlattr.SideClient
			if n.server {
				side = mlattr.SideServer
			}
			s.attrs.PutStr(mlattr.Side, side)
		}
		if more.keys != 0 || more.phase || more.epoch {
			s.attrs.PutStr(mlattr.CorrelationSource, b.marks.text(s.inherited))
		}
		if more.traceRun {
			s.attrs.PutStr(mlattr.RunID, traceRun.id)
			s.attrs.PutBool(mlattr.RunInferred, true)
		}
	}
}

// plain says whether the span inherits nothing, and nothing is to be said of
// what it is among others: most spans of a client that nobody knows.
func (n *node) plain() bool {
	return n.from == (origins{}) && n.inheritedPhase == 0 && n.conflict == 0 && !n.uses
}

// additions is what a span gets besides its own facts.
type additions struct {
	keys     uint8 // a bit for each inherited key that it lacks
	inferred bool  // the inherited run was inferred
	phase    bool  // an ancestor's
	epoch    bool  // the one at its time
	conflict bool
	below    bool // what it used is counted elsewhere
	side     bool // it is one of two that count the same
	traceRun bool // the trace is a run
}

// count is how many attributes they are at most.
func (a *additions) count() int {
	n := bits.OnesCount8(a.keys)
	if n > 0 || a.phase || a.epoch {
		n++ // the source
	}
	for _, flag := range [...]bool{a.inferred, a.phase, a.epoch, a.conflict, a.below, a.side, a.traceRun, a.traceRun} {
		if flag {
			n++
		}
	}
	return n
}

// inherit finds the inherited keys that the span lacks, and notes where they
// came from. A span whose mark is by another hand gets none: it could not be
// said where they are from.
func (s *spanState) inherit(n *node, more *additions) {
	if s.foreign {
		return
	}
	for k := range keyInferred {
		if n.from[k] == fromNowhere || n.present[k] {
			continue
		}
		// A conversation comes with its session: alone it would later be
		// taken for one.
		if k == keyConversation && !n.present[keySession] && n.from[keySession] == fromNowhere {
			continue
		}
		more.keys |= 1 << k
		s.inherited[k] = n.from[k]
		if k == keyRun && n.keys[keyInferred] != 0 && !n.present[keyInferred] {
			more.inferred = true
		}
	}
	if n.inheritedPhase != 0 && !s.phased {
		more.phase = true
		s.inherited[originPhase] = fromParent
	}
}
