package mlmetricsconnector

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestOneFailureOfAChainCounts cuts chains of failed spans, of which the first
// and the last are operations of a model, into batches of any size.
func TestOneFailureOfAChainCounts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := newNesting(100)
		length := 2 + rnd.IntN(5)
		var chain []candidate
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
			var models, links []candidate
			for _, c := range rest[:size] {
				if c.self == ref(2) || c.self == ref(byte(length+1)) {
					models = append(models, c)
				} else {
					links = append(links, c)
				}
			}
			for _, v := range n.lowest(models, links) {
				if v == counts {
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
	n := newNesting(100)
	assert.Empty(t, n.lowest(nil, []candidate{link(3, 2)}))
	assert.Equal(t, []verdict{counts}, n.lowest([]candidate{link(2, 1)}, nil))
}

// A span that claims to be its own ancestor ends nothing.
func TestLinksInACircle(t *testing.T) {
	n := newNesting(100)
	assert.Equal(t, []verdict{counts}, n.lowest([]candidate{link(4, 3)}, []candidate{link(3, 2), link(2, 3)}))
}

// The failure of an HTTP call is no failure of a model.
func TestOtherFailuresAreNone(t *testing.T) {
	next := new(consumertest.MetricsSink)
	c := start(t, createDefaultConfig().(*Config), next)
	td := ptrace.NewTraces()
	addSpan(td, "", 1, 1).Status().SetCode(ptrace.StatusCodeError)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Empty(t, next.AllMetrics())
}

// TestLongLinksAreClimbedOnce is the same as TestALongChainIsClimbedOnce, with
// many failures below one another, also in a circle.
func TestLongLinksAreClimbedOnce(t *testing.T) {
	const length = 2000
	for _, circle := range []bool{false, true} {
		spans, above := chain(length), linked{}
		for _, c := range spans {
			above[c.self] = c.parent
		}
		if circle {
			above[spans[0].parent] = spans[length-1].self
		}
		visits := 0
		for _, c := range slices.Backward(spans) {
			top := above.top(c.parent, func(spanKey) { visits++ })
			if !circle {
				require.Equal(t, spans[0].parent, top)
			}
		}
		assert.LessOrEqual(t, visits, 4*length, "circle: %t", circle)
	}
}
