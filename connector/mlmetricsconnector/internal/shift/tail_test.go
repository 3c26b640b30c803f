package shift_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

// A tail is found whatever becomes of the median, and a median that moves is no tail.
func TestATail(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- noise
	tailRule := shift.ProportionRule{Least: 0.07, Times: 5, Count: 10}
	var tail shift.Tail
	now, level := start, 0.0
	add := func(n, slowOf int) bool {
		for i := range n {
			now = now.Add(time.Second)
			value := level + 0.3*r.NormFloat64()
			if slowOf > 0 && i%slowOf == 0 {
				value += math.Log(10)
			}
			tail.Add(now, value, 0)
		}
		return tail.Over.Find(now, &tailRule).Shifted
	}
	assert.False(t, add(1000, 0))
	for range 1000 {
		level += math.Log(2) / 1000
		assert.False(t, add(1, 0), "it moves")
	}
	assert.False(t, add(1000, 50), "one in fifty")
	assert.True(t, add(200, 10))
	assert.InDelta(t, level+0.6+math.Log(1.4), tail.Limit(), 0.3)
	assert.False(t, add(400, 0))
}
