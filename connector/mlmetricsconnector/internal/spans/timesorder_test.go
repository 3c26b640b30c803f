package spans

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
)

// However the traces of a request are mixed, each span is divided after those of its
// trace that end before it; and a request whose traces are in order is not sorted.
func TestOrderOfTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sorted := 0
	for range 2000 {
		r := times{lastOfTrace: make(map[nesting.Trace]int32)}
		ends := map[nesting.Trace]pcommon.Timestamp{}
		ordered := true
		for range random.IntN(12) {
			end := pcommon.Timestamp(random.IntN(30) + 1)
			one := timedSpan{trace: nesting.Trace(random.IntN(3)), start: end - pcommon.Timestamp(random.IntN(2)), end: end}
			if random.IntN(4) > 0 && one.end < ends[one.trace] {
				one.end = ends[one.trace] + 1
				one.start = one.end
			}
			ordered = ordered && one.end >= ends[one.trace]
			ends[one.trace] = max(ends[one.trace], one.end)
			r.timed = append(r.timed, one)
		}
		r.orderTimes()
		if len(r.timedOrder) == 0 {
			for i := range r.timed {
				r.timedOrder = append(r.timedOrder, timedEnd{at: int32(i)})
			}
			assert.True(t, ordered)
		} else {
			sorted++
		}
		last := map[nesting.Trace]*timedSpan{}
		for _, at := range r.timedOrder {
			one := &r.timed[at.at]
			if before := last[one.trace]; before != nil {
				assert.GreaterOrEqual(t, one.end, before.end)
				assert.False(t, one.end == before.end && one.start > before.start, "a child after its parent")
			}
			last[one.trace] = one
		}
	}
	assert.Greater(t, sorted, 100)
	assert.Less(t, sorted, 1900)
}
