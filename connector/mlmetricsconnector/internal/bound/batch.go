package bound

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
)

// Timed is a span of a request whose time is divided by cause.
type Timed struct {
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

// endOf is what orders the spans, apart from the rest, which would fill the processor's
// caches.
type endOf struct {
	end, start pcommon.Timestamp
	// at is the index of the span.
	at int32
}

// Order is the order in which the spans of a request are divided: children before their
// parents. The zero Order is that of no spans.
type Order []endOf

// Sort makes it the order of all. It takes little time if they are in such an order, as SDKs
// send them.
func (o *Order) Sort(all []Timed) {
	*o = (*o)[:0]
	for i := range all {
		*o = append(*o, endOf{all[i].End, all[i].Start, int32(i)}) // #nosec G115 -- spans of a request
	}
	slices.SortFunc(*o, func(a, b endOf) int {
		if a.end != b.end {
			return cmp.Compare(a.end, b.end)
		}
		return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(a.at, b.at))
	})
}

// Divide divides the times of the spans of a request in their order.
func (m *Memory) Divide(all []Timed, order Order) {
	for _, next := range order {
		m.divide(&all[next.at])
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
