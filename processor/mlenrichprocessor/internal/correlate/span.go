package correlate

import (
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Read adds the next span of a resource with an index. It adds to the facts of
// the span the run that follows from its training run.
func (b *Batch) Read(f *vocabulary.Facts, s ptrace.Span, resource int) {
	at := len(b.spans)
	b.spans = append(b.spans, span{spanKey: spanKey{s.TraceID(), s.SpanID()}, parent: s.ParentSpanID(), resource: int32(resource)})
	n := &b.spans[at]
	n.inherited, n.foreign = readOrigins(f)
	settleTrainingRun(f, &n.inherited)
	n.spanUsage = b.readUsage(f, s)
	n.conflicted = f.At(slotConflict) != nil
	n.phased = f.At(slotPhase) != nil
	n.recognised = n.phased || f.Systems != 0 || f.At(slotMLOperation) != nil || f.At(slotOperation) != nil
	n.phase = b.texts.of(originPhase, f.TextAt(slotPhase))
	for k := range keyInferred {
		if f.At(keySlots[k]) == nil {
			continue
		}
		n.present[k] = true
		if n.inherited[k] == notInherited {
			n.own[k] = b.texts.of(k, f.TextAt(keySlots[k]))
		}
	}
	if inferred := f.At(keySlots[keyInferred]); inferred != nil {
		n.present[keyInferred] = true
		if inferred.Bool {
			// An inferred run is the span's, and of no other.
			n.own[keyRun] = 0
		}
	}
	if f.Systems.Has(table.TracePerSpan) {
		n.undated = b.epochs.read(f, n, s)
	}
	if s.Links().Len() > 0 {
		b.links.read(s, at)
	}
}

// settleTrainingRun makes a fine-tuning service's training run the run of the
// span, unless another run goes before it. One that was inherited came with its
// run.
func settleTrainingRun(f *vocabulary.Facts, inherited *origins) {
	training := f.TextAt(keySlots[keyTrainingRun])
	if training == "" || inherited[keyTrainingRun] != notInherited {
		return
	}
	if id, _ := f.NamedRun(); id != training {
		return
	}
	if id := f.At(keySlots[keyRun]); id != nil && !id.Own {
		id.Text = training
		return
	}
	f.SetText(keySlots[keyRun], training)
}

// OwnRun returns the run that the span with an index names itself, or "".
func (b *Batch) OwnRun(i int) string { return b.texts.text(b.spans[i].own[keyRun]) }

// Additions are the attributes that a span gets from others.
type Additions struct {
	batch    *Batch
	span     *span
	keys     uint8 // a bit for each inherited key that it lacks
	inferred bool  // the inherited run was inferred
	phase    bool  // an ancestor's
	epoch    bool  // the one at its time
	conflict bool
	covered  bool // its tokens are counted elsewhere
	repeated bool // the span that counts is no descendant
	failure  bool // its failure is counted elsewhere
	asked    bool // it is a request that states no operation
	again    bool // another span of its chain is the request
	side     bool // it is one of two that count the same
}

// Plain reports whether the span with an index names no run itself and gets
// nothing from others, as most spans of unknown clients.
func (b *Batch) Plain(i int) bool {
	n := &b.spans[i]
	return n.own[keyRun] == 0 && n.from == (origins{}) && n.inheritedPhase == 0 && n.conflict == 0 && !n.uses && !n.countable && !n.failedBelow && n.undated == 0
}

// Additions returns what the span with an index gets, if it is not Plain.
func (b *Batch) Additions(i int) (a Additions) {
	n := &b.spans[i]
	if own := n.own[keyRun]; own != 0 && n.own[keyTrainingRun] == 0 && n.conflict == 0 &&
		n.resourceRun != 0 && !n.resourceInferred && n.resourceRun != own {
		n.conflict = keyRun + 1
	}
	a.batch, a.span = b, n
	a.conflict = n.conflict != 0 && !n.conflicted
	a.covered = n.countable && (n.covered || n.wrapper || n.repeated)
	a.repeated = a.covered && n.repeated && !n.covered
	a.failure = n.failed && (n.failedBelow || n.twin) && !n.failureMarked
	a.asked = n.asked && !n.wrapper && !n.failedBelow && !a.covered
	a.again = n.askedOnce && n.countable && !a.covered
	a.side = n.uses && !n.sided && (n.server || n.client)
	if n.undated != 0 && b.epochs.undated[n.undated-1].found {
		a.epoch = true
		n.inherited[originEpoch] = fromTime
	}
	a.inherit(n)
	return a
}

// inherit finds the inherited keys that the span lacks, and notes their
// origins. A span whose origins another component wrote gets none, since theirs
// could not be added.
func (a *Additions) inherit(n *span) {
	if n.foreign {
		return
	}
	for k := range keyInferred {
		if n.from[k] == notInherited || n.present[k] {
			continue
		}
		// A conversation comes with its session: alone it would later be
		// taken for one.
		if k == keyConversation && !n.present[keySession] && n.from[keySession] == notInherited {
			continue
		}
		a.keys |= 1 << k
		n.inherited[k] = n.from[k]
		if k == keyRun && n.keys[keyInferred] != 0 && !n.present[keyInferred] {
			a.inferred = true
		}
	}
	if n.inheritedPhase != 0 && !n.phased {
		a.phase = true
		n.inherited[originPhase] = fromParent
	}
}

// Len returns how many attributes the additions are at most.
func (a *Additions) Len() int {
	if a.span == nil {
		return 0
	}
	n := bits.OnesCount8(a.keys)
	if n > 0 || a.phase || a.epoch {
		n++ // the source
	}
	for _, flag := range [...]bool{a.inferred, a.phase, a.epoch, a.conflict, a.covered, a.repeated, a.failure, a.asked, a.again, a.side} {
		if flag {
			n++
		}
	}
	return n
}

// Write adds the additions to the span's attributes.
func (a *Additions) Write(attrs pcommon.Map) {
	if a.span == nil {
		return
	}
	b, n := a.batch, a.span
	for k := range keyInferred {
		if a.keys&(1<<k) != 0 {
			attrs.PutStr(keyNames[k], b.texts.text(n.keys[k]))
		}
		if k == keyRun && a.inferred {
			attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	if a.phase {
		attrs.PutStr(mlattr.Phase, b.texts.text(n.inheritedPhase))
	}
	if a.epoch {
		attrs.PutInt(mlattr.Epoch, b.epochs.undated[n.undated-1].number)
	}
	if a.conflict {
		attrs.PutStr(mlattr.CorrelationConflict, keyNames[n.conflict-1])
	}
	if a.covered {
		attrs.PutBool(mlattr.UsageCounted, false)
	}
	if a.repeated {
		evidence := mlattr.EvidenceResponseID
		if n.twin {
			evidence = mlattr.EvidenceTimes
		}
		attrs.PutStr(mlattr.UsageEvidence, evidence)
	}
	if a.failure {
		attrs.PutBool(mlattr.ErrorCounted, false)
	}
	if a.asked || a.again {
		attrs.PutBool(mlattr.RequestCounted, a.asked)
	}
	if a.side {
		side := mlattr.SideClient
		if n.server {
			side = mlattr.SideServer
		}
		attrs.PutStr(mlattr.Side, side)
	}
	if a.keys != 0 || a.phase || a.epoch {
		attrs.PutStr(mlattr.CorrelationSource, b.Sources.text(n.inherited))
	}
}

// HasRun reports whether the span with an index has a run or gets one, or is of
// no trace, so that the run of its trace does not hold for it.
func (b *Batch) HasRun(i int) bool {
	n := &b.spans[i]
	return n.present[keyRun] || n.present[keyInferred] || n.from[keyRun] != notInherited || n.trace.IsEmpty()
}

// Trace returns the trace of the span with an index.
func (b *Batch) Trace(i int) pcommon.TraceID { return b.spans[i].trace }
