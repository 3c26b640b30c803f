package correlate

import (
	"hash/maphash"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/criticalpath"
)

// A trace is complete in a batch if all its spans came in it, as from one process
// that works for a short time, or by way of a processor that groups spans by trace:
// it has a root and every parent, and none of its spans came before. Spans that come
// later are not foreseen.

// completeTraces are the spans of complete traces.
type completeTraces struct {
	spans []criticalpath.Span
	// at has for each the index in the batch.
	at     []int32
	traces int32
}

func (c *completeTraces) reset() { c.spans, c.at, c.traces = c.spans[:0], c.at[:0], 0 }

// Complete returns the spans of the traces that are complete in the batch and have
// more than one span, of which one is of machine learning, with their parents and links and without their times, and for each
// its index. Any other complete trace counts if its root is linked to one of these.
// It must be called once, after Correlate.
func (b *Batch) Complete(s *Store) (spans []criticalpath.Span, at []int32) {
	for i := range b.traces {
		switch t := &b.traces[i]; {
		case !t.rooted:
			s.begun.add(s.seed, t.id)
		case t.spans > 1 && t.recognised && !s.begun.has(s.seed, t.id):
			b.addComplete(t)
		}
	}
	if len(b.complete.spans) > 0 {
		b.linkComplete(s)
	}
	return b.complete.spans, b.complete.at
}

// addComplete adds the spans of a trace if it has every parent.
func (b *Batch) addComplete(t *trace) {
	if t.spans > maxSearched && !t.active {
		b.indexSpans(t)
	}
	for at := t.last; at != none; at = b.spans[at].before {
		n := &b.spans[at]
		n.above = none
		if n.parent.IsEmpty() {
			continue
		}
		if n.above = b.findSpan(t, spanKey{n.trace, n.parent}); n.above == none {
			t.partial = true
			return
		}
	}
	t.complete = true
	first := len(b.complete.spans)
	for at := t.last; at != none; at = b.spans[at].before {
		b.spans[at].complete = int32(len(b.complete.spans))
		b.complete.spans = append(b.complete.spans, criticalpath.Span{Parent: criticalpath.None, Link: criticalpath.None, Trace: b.complete.traces})
		b.complete.at = append(b.complete.at, at)
	}
	b.complete.traces++
	for i, at := range b.complete.at[first:] {
		if above := b.spans[at].above; above != none {
			b.complete.spans[first+i].Parent = b.spans[above].complete
		}
	}
}

// indexSpans makes the spans of a large trace known to findSpan.
func (b *Batch) indexSpans(t *trace) {
	if b.spanAt == nil {
		b.spanAt = make(map[spanKey]int32)
	}
	for at := t.last; at != none; at = b.spans[at].before {
		if _, later := b.spanAt[b.spans[at].spanKey]; !later {
			b.spanAt[b.spans[at].spanKey] = at
		}
	}
}

// linkComplete adds the links of roots to spans of other complete traces, and the
// traces that are worked on because of one.
func (b *Batch) linkComplete(s *Store) {
	for i := range b.links.linkers {
		l := &b.links.linkers[i]
		n := &b.spans[l.at]
		if !n.parent.IsEmpty() {
			continue
		}
		to := b.linkedComplete(l)
		if to == none {
			continue
		}
		t := &b.traces[n.traceAt]
		if !t.complete && !t.partial && !s.begun.has(s.seed, t.id) {
			b.addComplete(t)
		}
		if t.complete {
			b.complete.spans[n.complete].Link = b.spans[to].complete
		}
	}
}

// linkedComplete returns the first span of another complete trace that a span is
// linked to, or none.
func (b *Batch) linkedComplete(l *linker) int32 {
	for j := l.first; j < l.end; j++ {
		to := b.links.links[j].to
		if at, ok := b.traceAt[to.trace]; ok && b.traces[at].complete {
			if found := b.findSpan(&b.traces[at], to); found != none {
				return found
			}
		}
	}
	return none
}

// maxBegun is how many traces are remembered at most. It is a power of two.
const maxBegun = 1 << 15

// begunTraces remembers traces of which a part has arrived, by a hash. Of two with
// the same place the later one is remembered. It is safe for concurrent use.
type begunTraces [maxBegun]atomic.Uint64

func (b *begunTraces) add(seed maphash.Seed, id pcommon.TraceID) {
	hash := maphash.Bytes(seed, id[:])
	b[hash%maxBegun].Store(hash)
}

func (b *begunTraces) has(seed maphash.Seed, id pcommon.TraceID) bool {
	hash := maphash.Bytes(seed, id[:])
	return b[hash%maxBegun].Load() == hash
}
