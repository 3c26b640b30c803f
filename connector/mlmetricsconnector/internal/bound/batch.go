package bound

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
)

// Timed is a span of a request whose time is divided by cause.
type Timed struct {
	Trace        nesting.Trace
	Self, Parent nesting.Key
	Start, End   pcommon.Timestamp
	Span
	// OfModel reports whether the span is that of a model's server, Serves whether
	// its program works for others, who may wait for their turn.
	OfModel, Serves bool
	// Again reports whether the span was delivered before.
	Again bool
	// Times is on what its time was spent, after Memory.Divide.
	Times Times
}

// Batch has the spans of a request whose time is divided. The zero Batch is ready to use.
type Batch struct {
	all []Timed
	// order is their order, lastOfTrace memory of childrenFirst.
	order       []endOf
	lastOfTrace map[nesting.Trace]int32
}

// endOf is what orders the spans, apart from the rest, which would fill the processor's
// caches.
type endOf struct {
	end, start pcommon.Timestamp
	// at is the index of the span.
	at int32
}

// Reset forgets all spans and keeps the memory.
func (b *Batch) Reset() { b.all = b.all[:0] }

// Len returns the number of spans.
func (b *Batch) Len() int { return len(b.all) }

// At returns a span by its index.
func (b *Batch) At(i int) *Timed { return &b.all[i] }

// Add appends and returns a span, of which the caller sets all fields but Times.
func (b *Batch) Add() *Timed {
	if n := len(b.all); n < cap(b.all) {
		b.all = b.all[:n+1]
	} else {
		b.all = append(b.all, Timed{})
	}
	return &b.all[len(b.all)-1]
}

// Order orders the spans, children before their parents. There is no order if they are in
// such an order, as SDKs send them.
func (b *Batch) Order() {
	b.order = b.order[:0]
	if b.childrenFirst() {
		return
	}
	b.order = slices.Grow(b.order, len(b.all))
	for i := range b.all {
		b.order = append(b.order, endOf{b.all[i].End, b.all[i].Start, int32(i)}) // #nosec G115 -- spans of a request
	}
	slices.SortFunc(b.order, func(a, b endOf) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(b.start, a.start), cmp.Compare(a.at, b.at))
	})
}

// childrenFirst reports whether the spans of each trace are in the order of their ends.
func (b *Batch) childrenFirst() bool {
	if b.lastOfTrace == nil {
		b.lastOfTrace = make(map[nesting.Trace]int32)
	}
	clear(b.lastOfTrace) // no reader that is large is kept
	for i := 1; i < len(b.all); i++ {
		t, before := &b.all[i], &b.all[i-1]
		if before.Trace != t.Trace {
			b.lastOfTrace[before.Trace] = int32(i - 1) // #nosec G115 -- spans of a request
			last, known := b.lastOfTrace[t.Trace]
			if !known {
				continue
			}
			before = &b.all[last]
		}
		if t.End < before.End || t.End == before.End && t.Start > before.Start {
			return false
		}
	}
	return true
}

// Divide divides the times of the spans of a batch, in their order.
func (m *Memory) Divide(b *Batch) {
	for i := range b.all {
		at := i
		if len(b.order) > 0 {
			at = int(b.order[i].at)
		}
		m.divide(&b.all[at])
	}
}

// divide divides the time of one span, after those below it.
func (m *Memory) divide(one *Timed) {
	if one.Again {
		return
	}
	if one.Self.Known() {
		m.Take(uint64(one.Self), &one.Below)
	}
	leaf := one.Below == Times{}
	one.Times = one.Divide()
	switch {
	case !one.Parent.Known() || one.Parent == one.Self:
	case one.OfModel:
		m.Add(uint64(one.Parent), &Times{ModelServer: one.Seconds})
	case leaf && one.Kind == Works && !one.Serves && one.Queue+one.Serialize == 0:
		// The work of the parent, for all that is known.
	default:
		m.Add(uint64(one.Parent), &one.Times)
	}
}
