package nesting

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

var seed = NewSeed()

func ref(id byte) Key { return KeyOf(seed.TraceOf(pcommon.TraceID{1}), pcommon.SpanID{id}) }

// link is a candidate with the id self below parent; 0 is none.
func link(self, parent byte) Candidate { return Candidate{Self: ref(self), Parent: ref(parent)} }

func TestNesting(t *testing.T) {
	type batch = []Candidate
	for name, tt := range map[string]struct {
		batches   []batch
		outermost [][]Verdict
		innermost [][]Verdict
	}{
		"siblings below a span that is no candidate": {
			batches:   []batch{{link(2, 1), link(3, 1)}, {link(4, 1)}},
			outermost: [][]Verdict{{Counts, Counts}, {Counts}},
			innermost: [][]Verdict{{Counts, Counts}, {Counts}},
		},
		"a chain in one batch": {
			batches:   []batch{{link(4, 3), link(3, 2), link(2, 1)}},
			outermost: [][]Verdict{{Below, Below, Counts}},
			innermost: [][]Verdict{{Counts, above, above}},
		},
		"a chain in one batch, parents first": {
			batches:   []batch{{link(2, 1), link(3, 2), link(4, 3)}},
			outermost: [][]Verdict{{Counts, Below, Below}},
			innermost: [][]Verdict{{above, above, Counts}},
		},
		"a chain over batches, children first": {
			batches:   []batch{{link(4, 3)}, {link(3, 2)}, {link(2, 1)}},
			outermost: [][]Verdict{{Counts}, {above}, {above}},
			innermost: [][]Verdict{{Counts}, {above}, {above}},
		},
		"a chain over batches, parents first": {
			batches:   []batch{{link(2, 1)}, {link(3, 2)}},
			outermost: [][]Verdict{{Counts}, {Below}},
			innermost: [][]Verdict{{Counts}, {Below}},
		},
		"the lowest came earlier, the others together": {
			batches:   []batch{{link(4, 3)}, {link(2, 1), link(3, 2)}},
			outermost: [][]Verdict{{Counts}, {above, Below}},
			innermost: [][]Verdict{{Counts}, {above, above}},
		},
		"roots": {
			batches:   []batch{{link(1, 0), link(2, 0)}},
			outermost: [][]Verdict{{Counts, Counts}},
			innermost: [][]Verdict{{Counts, Counts}},
		},
		"no ids at all": {
			batches:   []batch{{link(0, 0), link(0, 0)}},
			outermost: [][]Verdict{{Counts, Counts}},
			innermost: [][]Verdict{{Counts, Counts}},
		},
		"a span that is its own parent": {
			batches:   []batch{{link(1, 1)}},
			outermost: [][]Verdict{{Counts}},
			innermost: [][]Verdict{{Counts}},
		},
		"a circle ends": {
			batches:   []batch{{link(1, 2), link(2, 1)}, {link(1, 2), link(2, 1)}},
			outermost: [][]Verdict{{Below, Below}, {Below, Below}},
			innermost: [][]Verdict{{above, above}, {above, above}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			outer, inner := New(100), New(100)
			for i, b := range tt.batches {
				assert.Equal(t, tt.outermost[i], outer.Outermost(b), "outermost, batch %d", i)
				assert.Equal(t, tt.innermost[i], inner.Innermost(b), "innermost, batch %d", i)
			}
		})
	}
}

func TestAlwaysCounted(t *testing.T) {
	n := New(100)
	leaf, wrapper := link(3, 2), link(2, 1)
	leaf.Always = true
	assert.Equal(t, []Verdict{Counts, above}, n.Innermost([]Candidate{leaf, wrapper}), "a wrapper is no request of its own")
	assert.Equal(t, []Verdict{Below}, n.Innermost([]Candidate{link(4, 3)}), "nor is what lies below")
	again := link(5, 3)
	again.Always = true
	assert.Equal(t, []Verdict{Counts}, n.Innermost([]Candidate{again}))
}

// chain is as many spans, each below the one before, the highest first.
// TestParentThatEndedFirst shows that a span which always counts is that of its
// parent, where the parent came before it and counted: a client that ends the
// span of a stream when the stream begins. A second one below is another.
func TestParentThatEndedFirst(t *testing.T) {
	n := New(100)
	usage, another := link(2, 1), link(3, 1)
	usage.Always, another.Always = true, true
	assert.Equal(t, []Verdict{Counts}, n.Innermost([]Candidate{link(1, 0)}))
	assert.Equal(t, []Verdict{Below}, n.Innermost([]Candidate{usage}))
	assert.Equal(t, []Verdict{Counts}, n.Innermost([]Candidate{another}))
}

func chain(length int) (spans []Candidate) {
	id := func(i int) Key {
		return KeyOf(seed.TraceOf(pcommon.TraceID{1}), pcommon.SpanID{byte(i), byte(i >> 8), 1}) // #nosec G115 -- the low bytes
	}
	for i := range length {
		spans = append(spans, Candidate{Self: id(i + 1), Parent: id(i)})
	}
	return spans
}

// TestALongChainIsClimbedOnce is about a request that is one chain: what is done
// for it must not grow with the square of its length.
func TestALongChainIsClimbedOnce(t *testing.T) {
	const length = 2000
	for name, turn := range map[string]func([]Candidate){
		"highest first": func([]Candidate) {}, "lowest first": slices.Reverse[[]Candidate],
	} {
		t.Run(name, func(t *testing.T) {
			n, spans, parents := New(10*length), chain(length), map[Key]Key{}
			for _, c := range spans {
				parents[c.Self] = c.Parent
			}
			n.Set(spans[length-1].Self, Covered)
			turn(spans)
			marked := 0
			for i := range spans {
				marked += n.cover(spans[i].Self, parents)
			}
			assert.Equal(t, length, marked)
		})
	}
}
