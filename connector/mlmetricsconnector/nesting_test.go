package mlmetricsconnector

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func ref(id byte) spanKey { return keyOf(hashOf(pcommon.TraceID{1}), pcommon.SpanID{id}) }

// link is a candidate with the id self below parent; 0 is none.
func link(self, parent byte) candidate { return candidate{self: ref(self), parent: ref(parent)} }

func TestNesting(t *testing.T) {
	type batch = []candidate
	for name, tt := range map[string]struct {
		batches   []batch
		outermost [][]verdict
		innermost [][]verdict
	}{
		"siblings below a span that is no candidate": {
			batches:   []batch{{link(2, 1), link(3, 1)}, {link(4, 1)}},
			outermost: [][]verdict{{counts, counts}, {counts}},
			innermost: [][]verdict{{counts, counts}, {counts}},
		},
		"a chain in one batch": {
			batches:   []batch{{link(4, 3), link(3, 2), link(2, 1)}},
			outermost: [][]verdict{{below, below, counts}},
			innermost: [][]verdict{{counts, above, above}},
		},
		"a chain in one batch, parents first": {
			batches:   []batch{{link(2, 1), link(3, 2), link(4, 3)}},
			outermost: [][]verdict{{counts, below, below}},
			innermost: [][]verdict{{above, above, counts}},
		},
		"a chain over batches, children first": {
			batches:   []batch{{link(4, 3)}, {link(3, 2)}, {link(2, 1)}},
			outermost: [][]verdict{{counts}, {above}, {above}},
			innermost: [][]verdict{{counts}, {above}, {above}},
		},
		"a chain over batches, parents first": {
			batches:   []batch{{link(2, 1)}, {link(3, 2)}},
			outermost: [][]verdict{{counts}, {below}},
			innermost: [][]verdict{{counts}, {below}},
		},
		"the lowest came earlier, the others together": {
			batches:   []batch{{link(4, 3)}, {link(2, 1), link(3, 2)}},
			outermost: [][]verdict{{counts}, {above, below}},
			innermost: [][]verdict{{counts}, {above, above}},
		},
		"roots": {
			batches:   []batch{{link(1, 0), link(2, 0)}},
			outermost: [][]verdict{{counts, counts}},
			innermost: [][]verdict{{counts, counts}},
		},
		"no ids at all": {
			batches:   []batch{{link(0, 0), link(0, 0)}},
			outermost: [][]verdict{{counts, counts}},
			innermost: [][]verdict{{counts, counts}},
		},
		"a span that is its own parent": {
			batches:   []batch{{link(1, 1)}},
			outermost: [][]verdict{{counts}},
			innermost: [][]verdict{{counts}},
		},
		"a circle ends": {
			batches:   []batch{{link(1, 2), link(2, 1)}, {link(1, 2), link(2, 1)}},
			outermost: [][]verdict{{below, below}, {below, below}},
			innermost: [][]verdict{{above, above}, {above, above}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			outer, inner := newNesting(100), newNesting(100)
			for i, b := range tt.batches {
				assert.Equal(t, tt.outermost[i], outer.outermost(b), "outermost, batch %d", i)
				assert.Equal(t, tt.innermost[i], inner.innermost(b), "innermost, batch %d", i)
			}
		})
	}
}

func TestAlwaysCounted(t *testing.T) {
	n := newNesting(100)
	leaf, wrapper := link(3, 2), link(2, 1)
	leaf.always = true
	assert.Equal(t, []verdict{counts, above}, n.innermost([]candidate{leaf, wrapper}), "a wrapper is no request of its own")
	assert.Equal(t, []verdict{below}, n.innermost([]candidate{link(4, 3)}), "nor is what lies below")
	again := link(5, 3)
	again.always = true
	assert.Equal(t, []verdict{counts}, n.innermost([]candidate{again}))
}

// chain is as many spans, each below the one before, the highest first.
// TestParentThatEndedFirst shows that a span which always counts is that of its
// parent, where the parent came before it and counted: a client that ends the
// span of a stream when the stream begins. A second one below is another.
func TestParentThatEndedFirst(t *testing.T) {
	n := newNesting(100)
	usage, another := link(2, 1), link(3, 1)
	usage.always, another.always = true, true
	assert.Equal(t, []verdict{counts}, n.innermost([]candidate{link(1, 0)}))
	assert.Equal(t, []verdict{below}, n.innermost([]candidate{usage}))
	assert.Equal(t, []verdict{counts}, n.innermost([]candidate{another}))
}

func chain(length int) (spans []candidate) {
	id := func(i int) spanKey {
		return keyOf(hashOf(pcommon.TraceID{1}), pcommon.SpanID{byte(i), byte(i >> 8), 1}) // #nosec G115 -- the low bytes
	}
	for i := range length {
		spans = append(spans, candidate{self: id(i + 1), parent: id(i)})
	}
	return spans
}

// TestALongChainIsClimbedOnce is about a request that is one chain: what is done
// for it must not grow with the square of its length.
func TestALongChainIsClimbedOnce(t *testing.T) {
	const length = 2000
	for name, turn := range map[string]func([]candidate){
		"highest first": func([]candidate) {}, "lowest first": slices.Reverse[[]candidate],
	} {
		t.Run(name, func(t *testing.T) {
			n, spans, parents := newNesting(10*length), chain(length), map[spanKey]spanKey{}
			for _, c := range spans {
				parents[c.self] = c.parent
			}
			n.set(spans[length-1].self, covered)
			turn(spans)
			marked := 0
			for i := range spans {
				marked += n.cover(spans[i].self, parents)
			}
			assert.Equal(t, length, marked)
		})
	}
}
