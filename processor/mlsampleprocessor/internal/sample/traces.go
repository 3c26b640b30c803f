package sample

import (
	"cmp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// rememberedTraces is how many recent traces are remembered at least, besides those that
// wait, so that late spans follow the decision.
const rememberedTraces = 1 << 16

// traces are those that are remembered, by id. When young is full, old is dropped except for
// traces that wait, and young becomes old.
type traces struct{ young, old map[TraceID]*trace }

// known returns a trace, nil if it is not remembered.
func (ts *traces) known(id TraceID) *trace { return cmp.Or(ts.young[id], ts.old[id]) }

// of returns a trace, a new one if it is not remembered. waiting is the number of units that
// wait.
func (ts *traces) of(id TraceID, waiting int) *trace {
	if t, known := ts.young[id]; known {
		return t
	}
	t, known := ts.old[id]
	if !known {
		t = &trace{id: id}
	}
	ts.young[id] = t
	if len(ts.young) < rememberedTraces+2*waiting {
		return t
	}
	next := make(map[TraceID]*trace, len(ts.young))
	for id, t := range ts.old {
		if t.waits > 0 {
			next[id] = t
		}
	}
	ts.old, ts.young = ts.young, next
	ts.young[id] = t
	return t
}

// trace is what is remembered about a trace.
type trace struct {
	id TraceID
	// current is the unit of its newest step, or its only one. next has spans that
	// began after that step, until it is known which step they belong to.
	current, next *Unit
	// first is the memory of the trace's first unit.
	first Unit
	// waits is the number of units that wait.
	waits int
	// wanted are spans that kept ones are below, alone those that were kept although
	// their unit may not be.
	wanted, alone []SpanID
}

// maxIDs limits the wanted spans of a trace, and those that were kept alone. The
// oldest are forgotten.
const maxIDs = 64

// remember adds an id to some of a trace.
func remember(ids []SpanID, id SpanID) []SpanID {
	if id == (SpanID{}) || slices.Contains(ids, id) {
		return ids
	}
	return shared.AppendNewest(ids, id, maxIDs)
}

// want remembers a span that is to be kept when it arrives.
func (t *trace) want(id SpanID) { t.wanted = remember(t.wanted, id) }

// takeWanted reports whether kept spans are below a span.
func (t *trace) takeWanted(sp *Span) bool {
	i := slices.Index(t.wanted, sp.ID)
	if i < 0 {
		return false
	}
	t.wanted = slices.Delete(t.wanted, i, i+1)
	return true
}
