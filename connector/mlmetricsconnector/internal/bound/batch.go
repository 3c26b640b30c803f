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
	all   []Timed
	order []endOf
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
	b.all = slices.Grow(b.all, 1)[:len(b.all)+1]
	return &b.all[len(b.all)-1]
}

// Order orders the spans, children before their parents. It takes little time if they are
// in such an order, as SDKs send them.
func (b *Batch) Order() {
	b.order = slices.Grow(b.order[:0], len(b.all))
	for i := range b.all {
		b.order = append(b.order, endOf{b.all[i].End, b.all[i].Start, int32(i)}) // #nosec G115 -- spans of a request
	}
	slices.SortFunc(b.order, func(a, b endOf) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(b.start, a.start), cmp.Compare(a.at, b.at))
	})
}

// Divide divides the times of the spans of a batch, in their order.
func (m *Memory) Divide(b *Batch) {
	for _, next := range b.order {
		m.divide(&b.all[next.at])
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
