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
	assert.True(t, rule.Step(3, 5, 0, 1))
}

// TestOneInNStepsWithoutNumbers has steps of every length, among them those that begin
// in each fifth or tenth second: of all runs about one in N steps is chosen.
func TestOneInNStepsWithoutNumbers(t *testing.T) {
	const steps, oneIn = 20_000, 10
	for _, run := range []uint64{0, 7, rule.Hash("llama")} {
		for _, length := range []time.Duration{2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute} {
			kept := 0
			for n := range int64(steps) {
				began := 1_700_000_000e9 + n*int64(length)
				chosen := rule.Step(run, 0, began, oneIn)
				assert.Equal(t, chosen, rule.Step(run, 0, began-began%1e9+999_999_999, oneIn), "all ranks of a second")
				if chosen {
					kept++
				}
			}
			assert.InDelta(t, steps/oneIn, kept, steps/oneIn/8, "run %d, steps of %s", run, length)
		}
	}
	// Collectors of different versions meet: the choice never changes.
	var chosen []int64
	for second := range int64(60) {
		if rule.Step(rule.Hash("llama"), 0, second*1e9, oneIn) {
			chosen = append(chosen, second)
		}
	}
	assert.Equal(t, []int64{4, 10, 22, 34, 40, 59}, chosen)
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
