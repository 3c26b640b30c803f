package rule_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
)

// Collectors of different versions meet: the hash never changes.
func TestTheHashIsFixed(t *testing.T) {
	assert.Equal(t, uint64(0xef46db3751d8e999), rule.Hash(""))
	assert.Equal(t, uint64(0x44bc2cf5ad770999), rule.Hash("abc"))
}

func TestOneInNSteps(t *testing.T) {
	for _, run := range []uint64{0, 7, rule.Hash("llama")} {
		kept := 0
		for number := int64(1); number <= 1000; number++ {
			if rule.Step(run, number, 0, 10) {
				kept++
			}
		}
		assert.Equal(t, 100, kept)
	}
	assert.True(t, rule.Step(3, 0, 13e9+5e8, 10), "a step without a number, by its second")
	assert.False(t, rule.Step(3, 0, 14e9+5e8, 10))
	assert.True(t, rule.Step(3, 5, 0, 1))
}

// durations adds each duration that it compares.
type durations struct{ rule.Durations }

func (d *durations) Slow(duration, quantile, times float64) bool {
	defer d.Add(duration)
	return d.Durations.Slow(duration, quantile, times)
}

func TestSlow(t *testing.T) {
	var d durations
	for range 30 {
		assert.False(t, d.Slow(1, 0, 3), "as usual, or too few to say")
	}
	assert.False(t, d.Slow(2.9, 0, 3))
	assert.True(t, d.Slow(3.1, 0, 3))
	assert.False(t, d.Slow(100, 0, 0), "switched off")
	assert.InDelta(t, 1, d.Median(), 0)
}

func TestSlowByQuantile(t *testing.T) {
	var d durations
	slow := 0
	const n = 10_000
	for i := range n {
		if d.Slow(float64(i*7919%1009), 0.99, 0) { // spread evenly
			slow++
		}
	}
	assert.InDelta(t, n/100, slow, n/200)
}

// After a lasting change, the new duration becomes usual.
func TestSlowForgets(t *testing.T) {
	var d durations
	for range 600 {
		d.Slow(1, 0, 3)
	}
	assert.True(t, d.Slow(10, 0, 3))
	for range 300 {
		d.Slow(10, 0, 3)
	}
	assert.False(t, d.Slow(10, 0, 3))
}

// The median is that of the newest 512, in whatever order they come.
func TestMedianOfTheNewest(t *testing.T) {
	var d rule.Durations
	random := rand.New(rand.NewPCG(1, 2))
	var all []float64
	for range 3000 {
		all = append(all, float64(random.IntN(1000)))
		d.Add(all[len(all)-1])
		newest := slices.Clone(all[max(0, len(all)-512):])
		slices.Sort(newest)
		require.InDelta(t, newest[len(newest)/2], d.Median(), 0)
	}
}

func TestRare(t *testing.T) {
	var r rule.Rare
	at := time.Unix(0, 0)
	assert.True(t, r.First(1, at))
	assert.False(t, r.First(1, at.Add(59*time.Second)))
	assert.True(t, r.First(2, at))
	assert.True(t, r.First(1, at.Add(time.Minute)))
	kept := 0
	for operation := range uint64(100_000) {
		if r.First(operation, at.Add(2*time.Minute)) {
			kept++
		}
	}
	assert.Equal(t, 1024, kept, "of a flood of operations")
}
