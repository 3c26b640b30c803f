package correlate

import (
	"strconv"

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
	b.spans = append(b.spans, span{spanKey: spanKey{s.TraceID(), s.SpanID()}, parent: s.ParentSpanID(), resource: int32(resource), scope: int32(len(b.scopes) - 1)})
	n := &b.spans[at]
	n.stated = readStated(f)
	n.spanUsage = b.readUsage(f, s)
	n.conflicted = f.At(vocabulary.SlotCorrelationConflict) != nil
	n.phased = f.At(vocabulary.SlotPhase) != nil
	n.phase = b.texts.of(originPhase, f.TextAt(vocabulary.SlotPhase))
	for k := range keyInferred {
		if n.present[k] && n.inherited[k] == notInherited {
			n.own[k] = b.texts.of(k, f.TextAt(keySlots[k]))
		}
	}
	if inferred, _ := f.BoolAt(keySlots[keyInferred]); inferred {
		// An inferred run is the span's, and of no other.
		n.own[keyRun] = 0
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

// Additions appends the attributes that the span with an index gets from others.
func (b *Batch) Additions(to []vocabulary.Fact, i int) []vocabulary.Fact {
	n := &b.spans[i]
	text := func(key, value string) {
		to = append(to, vocabulary.Fact{Key: key, Kind: table.KindText, Text: value})
	}
	flag := func(is bool, key string, value bool) {
		if is {
			to = append(to, vocabulary.Fact{Key: key, Kind: table.KindBool, Bool: value})
		}
	}
	sources := n.inherited
	// A span whose origins another component wrote gets none, since theirs could not be
	// added.
	if n.from != (origins{}) && !n.foreign {
		for k := range keyInferred {
			// A conversation comes with its session: alone it would later be
			// taken for one.
			alone := k == keyConversation && !n.present[keySession] && n.from[keySession] == notInherited
			if n.from[k] == notInherited || n.present[k] || alone {
				continue
			}
			text(keyNames[k], b.texts.text(n.keys[k]))
			sources[k] = n.from[k]
			flag(k == keyRun && n.keys[keyInferred] != 0 && !n.present[keyInferred], mlattr.RunInferred, true)
		}
	}
	if n.inheritedPhase != 0 && !n.phased && !n.foreign {
		text(mlattr.Phase, b.texts.text(n.inheritedPhase))
		sources[originPhase] = fromParent
	}
	if n.undated != 0 && b.epochs.undated[n.undated-1].found {
		to = append(to, vocabulary.Fact{Key: mlattr.Epoch, Kind: table.KindInt, Int: b.epochs.undated[n.undated-1].number})
		sources[originEpoch] = fromTime
	}
	if sources != n.inherited {
		text(mlattr.CorrelationSource, b.Sources.text(sources))
	}
	if own := n.own[keyRun]; own != 0 && n.own[keyTrainingRun] == 0 && n.conflict == 0 &&
		n.of.run != 0 && !n.of.inferred && n.of.run != own {
		n.conflict = keyRun + 1
	}
	if n.conflict != 0 && !n.conflicted {
		text(mlattr.CorrelationConflict, keyNames[n.conflict-1])
	}
	covered := n.countable && (n.covered || n.wrapper || n.repeated)
	flag(covered, mlattr.UsageCounted, false)
	if covered && n.repeated && !n.covered {
		evidence := mlattr.EvidenceResponseID
		if n.twin {
			evidence = mlattr.EvidenceTimes
		}
		text(mlattr.UsageEvidence, evidence)
	}
	flag(n.failed && (n.failedBelow || n.twin && (n.countable || n.uses)) && !n.failureMarked, mlattr.ErrorCounted, false)
	asked := n.asked && n.countable && !n.wrapper && !n.failedBelow && !covered
	flag(asked || n.askedOnce && n.countable && !covered, mlattr.RequestCounted, asked)
	if n.refused != 0 && !n.answered {
		text(mlattr.ErrorType, strconv.Itoa(int(n.refused)))
	}
	if n.wholeInput != 0 {
		to = append(to, vocabulary.Fact{Key: mlattr.UsageInputTokens, Kind: table.KindInt, Int: n.wholeInput})
	}
	if n.uses && !n.sided && (n.server || n.client) {
		side := mlattr.SideClient
		if n.server {
			side = mlattr.SideServer
		}
		text(mlattr.Side, side)
	}
	return to
}

// HasRun reports whether the span with an index has a run or gets one, or is of
// no trace, so that the run of its trace does not hold for it.
func (b *Batch) HasRun(i int) bool {
	n := &b.spans[i]
	return n.present[keyRun] || n.present[keyInferred] || n.from[keyRun] != notInherited || n.trace.IsEmpty()
}

// Trace returns the trace of the span with an index.
func (b *Batch) Trace(i int) pcommon.TraceID { return b.spans[i].trace }
