package bound_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
)

// However the spans of a request are mixed, each is divided after those below it: what the
// lowest waited for is known of the whole chain, also where spans end at the same time.
func TestOrderOfTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m, order := bound.NewMemory(64), bound.Order(nil)
	next := nesting.Key(1)
	for range 2000 {
		n := 2 + random.IntN(8)
		chain := make([]bound.Timed, n)
		start, end := pcommon.Timestamp(0), pcommon.Timestamp(100)
		for i := range chain {
			one := &chain[i]
			one.Self, one.Parent = next, next-1
			one.Start, one.End, one.Seconds, one.Kind = start, end, float64(end-start), bound.CallsOut
			next++
			start, end = start+1, end-pcommon.Timestamp(random.IntN(2))
		}
		top := chain[0].Self
		chain[0].Parent = 0
		chain[n-1].Queue = 1
		random.Shuffle(n, func(i, j int) { chain[i], chain[j] = chain[j], chain[i] })
		order.Sort(chain)
		m.Divide(chain, order)
		for i := range chain {
			if chain[i].Self == top {
				assert.InDelta(t, 1, chain[i].Times[bound.Queue], 1e-9)
			}
		}
		next++
	}
}
