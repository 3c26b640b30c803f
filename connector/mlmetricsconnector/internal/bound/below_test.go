package bound_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
)

func ref(n int) *bound.Ref {
	var r bound.Ref
	binary.BigEndian.PutUint32(r[:], uint32(n))
	return &r
}

func take(m *bound.Memory, n int) (times bound.Times) {
	m.Take(ref(n), &times)
	return times
}

func TestMemoryAddsUpUntilTheParentArrives(t *testing.T) {
	m := bound.NewMemory(64)
	m.Add(ref(1), &bound.Times{bound.Queue: 1})
	m.Add(ref(2), &bound.Times{bound.OnCPU: 5})
	m.Add(ref(1), &bound.Times{bound.Queue: 2, bound.OnGPU: 4})
	assert.Equal(t, bound.Times{bound.Queue: 3, bound.OnGPU: 4}, take(m, 1))
	assert.Equal(t, bound.Times{}, take(m, 1), "taken")
	assert.Equal(t, bound.Times{bound.OnCPU: 5}, take(m, 2))
}

func TestMemoryForgetsWhatCameFirst(t *testing.T) {
	const spans = 64
	m := bound.NewMemory(spans)
	for i := range 10 * spans {
		m.Add(ref(i), &bound.Times{bound.Queue: 1})
	}
	newest, all := 0.0, 0.0
	for i := range 10 * spans {
		times := take(m, i)
		if all += times.Sum(); i >= 10*spans-spans/4 {
			newest += times.Sum()
		}
	}
	assert.LessOrEqual(t, all, float64(spans))
	assert.Greater(t, newest, 0.8*spans/4)
}
