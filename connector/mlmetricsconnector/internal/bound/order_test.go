package bound

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
)

// However the traces of a request are mixed, each span is divided after those of its
// trace that end before it.
func TestOrderOfTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var r Batch
		ends := map[nesting.Trace]pcommon.Timestamp{}
		for range random.IntN(12) {
			end := pcommon.Timestamp(random.IntN(30) + 1)
			one := Timed{Trace: nesting.Trace(random.IntN(3)), Start: end - pcommon.Timestamp(random.IntN(2)), End: end}
			if random.IntN(4) > 0 && one.End < ends[one.Trace] {
				one.End = ends[one.Trace] + 1
				one.Start = one.End
			}
			ends[one.Trace] = max(ends[one.Trace], one.End)
			r.all = append(r.all, one)
		}
		r.Order()
		assert.Len(t, r.order, len(r.all))
		last := map[nesting.Trace]*Timed{}
		for _, at := range r.order {
			one := &r.all[at.at]
			if before := last[one.Trace]; before != nil {
				assert.GreaterOrEqual(t, one.End, before.End)
				assert.False(t, one.End == before.End && one.Start > before.Start, "a child after its parent")
			}
			last[one.Trace] = one
		}
	}
}
