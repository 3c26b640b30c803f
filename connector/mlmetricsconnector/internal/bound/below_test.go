package bound_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
)

// key is as random as the hash of a span's ids.
func key(n int) uint64 { return uint64(n+1) * 0x9e3779b97f4a7c15 }

func take(m *bound.Memory, n int) (times bound.Times) {
	m.Take(key(n), &times)
	return times
}

func TestMemoryAddsUpUntilTheParentArrives(t *testing.T) {
	m := bound.NewMemory(64)
	m.Add(key(1), &bound.Times{bound.Queue: 1})
	m.Add(key(2), &bound.Times{bound.OnCPU: 5})
	m.Add(key(1), &bound.Times{bound.Queue: 2, bound.OnGPU: 4})
	assert.Equal(t, bound.Times{bound.Queue: 3, bound.OnGPU: 4}, take(m, 1))
	assert.Equal(t, bound.Times{}, take(m, 1), "taken")
	assert.Equal(t, bound.Times{bound.OnCPU: 5}, take(m, 2))
}

func TestMemoryForgetsWhatCameFirst(t *testing.T) {
	const spans = 64
	m := bound.NewMemory(spans)
	for i := range 10 * spans {
		m.Add(key(i), &bound.Times{bound.Queue: 1})
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
