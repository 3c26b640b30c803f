package nesting

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOneFailureOfAChainCounts cuts chains of failed spans, of which the first
// and the last are operations of a model, into batches of any size.
func TestOneFailureOfAChainCounts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := New(100)
		length := 2 + rnd.IntN(5)
		var chain []Candidate
		for i := range length {
			chain = append(chain, link(byte(i+2), byte(i+1)))
		}
		inOrder := rnd.IntN(2) == 0
		if !inOrder {
			slices.Reverse(chain)
		}
		count := 0
		for rest := chain; len(rest) > 0; {
			size := 1 + rnd.IntN(len(rest))
			var models, links []Candidate
			for _, c := range rest[:size] {
				if c.Self == ref(2) || c.Self == ref(byte(length+1)) {
					models = append(models, c)
				} else {
					links = append(links, c)
				}
			}
			for _, v := range n.Lowest(models, links) {
				if v == Counts {
					count++
				}
			}
			rest = rest[size:]
		}
		require.Equal(t, 1, count, "%d spans, highest first: %t", length, inOrder)
	}
}

// A failure of something else, with no operation of a model below it, hides
// none above.
func TestALinkAloneHidesNothing(t *testing.T) {
	n := New(100)
	assert.Empty(t, n.Lowest(nil, []Candidate{link(3, 2)}))
	assert.Equal(t, []Verdict{Counts}, n.Lowest([]Candidate{link(2, 1)}, nil))
}

// A span that claims to be its own ancestor ends nothing.
func TestLinksInACircle(t *testing.T) {
	n := New(100)
	assert.Equal(t, []Verdict{Counts}, n.Lowest([]Candidate{link(4, 3)}, []Candidate{link(3, 2), link(2, 3)}))
}

// TestLongLinksAreClimbedOnce is the same as TestALongChainIsClimbedOnce, with
// many failures below one another, also in a circle.
func TestLongLinksAreClimbedOnce(t *testing.T) {
	const length = 2000
	for _, circle := range []bool{false, true} {
		spans, above := chain(length), linked{}
		for _, c := range spans {
			above[c.Self] = c.Parent
		}
		if circle {
			above[spans[0].Parent] = spans[length-1].Self
		}
		visits := 0
		for _, c := range slices.Backward(spans) {
			top := above.top(c.Parent, func(Key) { visits++ })
			if !circle {
				require.Equal(t, spans[0].Parent, top)
			}
		}
		assert.LessOrEqual(t, visits, 4*length, "circle: %t", circle)
	}
}
