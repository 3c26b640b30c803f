package mlenrichprocessor

import "slices"

// How much is remembered of one trace. Beyond it the oldest half is forgotten.
const (
	maxTraceSpans = 4096
	maxTraceAbove = 256
)

// traceMemory is what the store remembers of a trace. What its spans hand down
// is kept with the trace, and not by span: a batch has many spans of a trace,
// and then asks once.
type traceMemory struct {
	agreement
	// spans are those that hand something down, the newest last.
	spans []handedDown
	// above are the spans above one that used tokens and came before them.
	above []spanAbove
}

// handedDown is what a span hands down. The keys are shared, and never changed.
type handedDown struct {
	id   [8]byte
	keys *keySet
}

// spanAbove is a span that is above one that used tokens, and the service of
// that one, as store.hashOf has it.
type spanAbove struct {
	id      [8]byte
	service uint64
	// serves is true where that is the first span below which is a server's.
	serves bool
}

// handsDown returns what a span hands down, or nil.
func (m *traceMemory) handsDown(id [8]byte) *keySet {
	for _, span := range slices.Backward(m.spans) {
		if span.id == id {
			return span.keys
		}
	}
	return nil
}

// appendBounded appends to a list of at most limit, and returns by how much it
// grew and how many had to go.
func appendBounded[T any](list *[]T, more []T, limit int) (grown, gone int) {
	before := len(*list)
	if over := before + len(more) - limit; over > 0 {
		gone = min(max(over, limit/2), before)
		*list = slices.Delete(*list, 0, gone)
		if rest := len(*list) + len(more) - limit; rest > 0 {
			more, gone = more[rest:], gone+rest
		}
	}
	*list = append(*list, more...)
	return len(*list) - before, gone
}

// held counts what the memories of all traces hold of one kind together.
type held struct {
	n       int
	evicted int64
}

// reuse empties the memory of a trace that is forgotten, for another.
func (m *traceMemory) reuse() traceMemory {
	const usual = 64
	empty := traceMemory{}
	if cap(m.spans) <= usual {
		clear(m.spans)
		empty.spans = m.spans[:0]
	}
	if cap(m.above) <= usual {
		empty.above = m.above[:0]
	}
	return empty
}
