package reprogenprocessor

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
)

// heldSpan is a span of a trace that failed.
type heldSpan struct {
	id, parent pcommon.SpanID
	copied     failure.Span
	failed     bool
	weight     int64
}

// heldTrace is a trace that failed, as far as it is known. The book's lock
// guards it.
type heldTrace struct {
	id        pcommon.TraceID
	origin    fairness.Origin // of its first failure
	spans     map[pcommon.SpanID]*heldSpan
	order     []*heldSpan // as they came
	incidents []*incident
	expires   time.Time
	omitted   int
	bytes     int64
}

// weight is what the trace takes in memory, its failures included.
func (t *heldTrace) weight() int64 {
	weight := t.bytes
	for _, i := range t.incidents {
		weight += int64(i.failure.Weight)
	}
	return weight
}

// above returns the spans above an incident, the parent first, and whether
// the last one is a root.
func (t *heldTrace) above(i *incident) (spans []*heldSpan, complete bool) {
	seen := map[pcommon.SpanID]bool{i.span: true}
	for at := i.parent; ; {
		if at.IsEmpty() {
			return spans, true
		}
		s, ok := t.spans[at]
		if !ok || seen[at] || len(spans) == maxAncestors {
			return spans, false
		}
		seen[at] = true
		spans = append(spans, s)
		at = s.parent
	}
}

// isBelow reports whether n's span has i's span above it.
func (t *heldTrace) isBelow(n, i *incident) bool {
	if i.parent == n.span {
		return false // they are each other's parent, or i is below n
	}
	at := n.parent
	for range maxAncestors {
		if at == i.span {
			return true
		}
		s, ok := t.spans[at]
		if !ok {
			return false
		}
		at = s.parent
	}
	return false
}

// put adds a span; one that is known already is not added again.
func (t *heldTrace) put(s *heldSpan) bool {
	if _, known := t.spans[s.id]; known {
		return false
	}
	t.spans[s.id] = s
	t.order = append(t.order, s)
	t.bytes += s.weight
	return true
}

// trim removes the oldest spans until at most limit are left, those that did
// not fail first, and never an incident's span nor one above it.
func (t *heldTrace) trim(limit int) {
	excess := len(t.order) - limit
	if excess <= 0 {
		return
	}
	needed := make(map[pcommon.SpanID]bool)
	for _, i := range t.incidents {
		needed[i.span] = true
		above, _ := t.above(i)
		for _, s := range above {
			needed[s.id] = true
		}
	}
	for _, failed := range [...]bool{false, true} {
		t.order = slices.DeleteFunc(t.order, func(s *heldSpan) bool {
			if excess == 0 || s.failed != failed || needed[s.id] {
				return false
			}
			excess--
			t.omitted++
			t.bytes -= s.weight
			delete(t.spans, s.id)
			return true
		})
	}
}

// clear removes all spans: where there is no room for those above a failure,
// it is written without them.
func (t *heldTrace) clear() {
	t.omitted += len(t.order)
	t.order, t.bytes = nil, 0
	clear(t.spans)
}

// filter tells without a lock whether a trace may be one that is kept. Of
// those that are not, it lets nearly all pass at the cost of one load.
type filter struct {
	slots [4096]atomic.Int32
}

func (f *filter) slot(id pcommon.TraceID) *atomic.Int32 {
	mixed := (binary.LittleEndian.Uint64(id[:8]) ^ binary.LittleEndian.Uint64(id[8:])) * 0x9E3779B97F4A7C15
	return &f.slots[mixed>>52]
}

func (f *filter) add(id pcommon.TraceID)          { f.slot(id).Add(1) }
func (f *filter) remove(id pcommon.TraceID)       { f.slot(id).Add(-1) }
func (f *filter) mayHave(id pcommon.TraceID) bool { return f.slot(id).Load() != 0 }
