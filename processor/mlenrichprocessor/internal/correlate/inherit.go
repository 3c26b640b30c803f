package correlate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxSearched is how many spans of a trace are searched one by one.
const maxSearched = 16

// inheritAll lets the spans that are not resolved inherit from their parents.
func (b *branches) inheritAll() {
	for i := range b.spans {
		// Up to the first ancestor that is done, then down again. The state
		// resolving ends a cycle, which only bad data has.
		b.chain = b.chain[:0]
		for at := int32(i); at != none && b.spans[at].state == unresolved; at = b.spans[at].above {
			b.spans[at].state = resolving
			b.chain = append(b.chain, at)
		}
		for _, at := range slices.Backward(b.chain) {
			n := &b.spans[at]
			down, phase := n.earlier, symbol(0)
			if n.above != none && b.spans[n.above].state == resolved {
				parent := &b.spans[n.above]
				down = parent.down
				if phase = parent.phase; phase == 0 {
					phase = parent.inheritedPhase
				}
			}
			b.inheritFrom(n, down, phase)
			n.state = resolved
		}
	}
}

// findParents finds the parents of the spans of active traces in the batch, or else what
// they hand down. The store is locked.
func (b *branches) findParents(s *Store, now time.Time) {
	b.sets = append(b.sets, set[symbol]{})
	for i := range b.spans {
		n := &b.spans[i]
		n.above = none
		if n.traceAt == none || !b.traces[n.traceAt].active {
			n.state = resolved
		} else if b.traces[n.traceAt].spans > maxSearched {
			mlattr.Put(&b.spanAt, n.spanKey, int32(i))
		}
	}
	var f finder
	var asked spanKey
	var memory *traceMemory
	var down int32
	for i := range b.spans {
		n := &b.spans[i]
		if n.state == resolved || n.parent == (pcommon.SpanID{}) {
			continue
		}
		t, parent := &b.traces[n.traceAt], spanKey{n.trace, n.parent}
		if n.above = b.findSpan(t, parent); n.above != none || !t.handsDown {
			continue
		}
		if parent.trace != asked.trace {
			memory = s.traces.Find(parent.trace, now)
		}
		if parent != asked {
			asked, down = parent, 0
			if memory != nil {
				keys := f.handed(s, parent, memory)
				down = b.fromStore(&keys)
			}
		}
		n.earlier = down
	}
}

// findSpan returns the index of a span of an active trace in the batch, or
// none. Of several with the same id it is the last.
func (b *branches) findSpan(t *trace, wanted spanKey) int32 {
	if t.spans > maxSearched {
		if at, ok := b.spanAt[wanted]; ok {
			return at
		}
		return none
	}
	at := t.last
	for at != none && b.spans[at].id != wanted.id {
		at = b.spans[at].before
	}
	return at
}

// inheritFrom computes what a span has and hands down, from the set of keys
// that its parent hands down, which is the empty one if that is unknown.
func (b *branches) inheritFrom(n *span, from int32, phase symbol) {
	if n.phase == 0 {
		n.inheritedPhase = phase
	}
	above := b.sets[from]
	var down set[symbol]
	for k := range down {
		switch parent := above[k]; {
		case n.own[k] != 0:
			down[k] = n.own[k]
			if parent != 0 && parent != n.own[k] && exclusive(k) && n.conflict == 0 {
				n.conflict = uint8(k + 1)
			}
		case k != keyInferred && n.admitsAbove(k, &above):
			down[k] = parent
			if k == keyRun && parent == n.of.run {
				continue // the resource names it already
			}
			n.inheritKey(k, &above, fromParent)
			if k == keyRun && n.conflict == 0 && n.contradicts(&above) {
				n.conflict = keyRun + 1
			}
		default:
			// A run that was inferred for ancestors stays with them if the
			// resource has one.
			down[k] = n.keys[k]
		}
	}
	if down == above {
		n.down = from
		return
	}
	n.down = b.addSet(&down)
}

// contradicts reports whether the ancestor's run, which is not that of the
// span's resource, contradicts a named one. A training run within a run does
// not.
func (n *span) contradicts(above *set[symbol]) bool {
	return n.of.run != 0 && !n.of.inferred && above[keyTrainingRun] != above[keyRun]
}
