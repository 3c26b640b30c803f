package pace_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

func add(s *pace.Steps, n int, took time.Duration) {
	for range n {
		s.Add(took)
	}
}

func TestStepTimes(t *testing.T) {
	var s pace.Steps
	assert.Zero(t, s.Times())
	add(&s, 3, 2*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 2, Newest: 2}, s.Times(), "of as many as there are")
	add(&s, 66, 2*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 2, Newest: 2}, s.Times(), "49 steps are not usual yet")
	add(&s, 1, 2*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 2, Newest: 2, Usual: 2}, s.Times())
	add(&s, 50, 2*time.Second)

	add(&s, 9, 3*time.Second)
	assert.InDelta(t, 2, s.Times().Recent, 0, "fewer than half of the recent ones")
	add(&s, 1, 3*time.Second)
	assert.InDelta(t, 2.5, s.Times().Recent, 0, "half of them")
	assert.False(t, s.Times().Longer(1.3), "1.25 times")
	add(&s, 1, 3*time.Second)
	assert.InDelta(t, 3, s.Times().Recent, 0)
	assert.False(t, s.Times().Longer(1.3), "chance, as far as eleven steps show")
	add(&s, 5, 3*time.Second)
	assert.True(t, s.Times().Longer(1.3))
	lasted, steps := s.SlowFor(2, 1.3)
	assert.Equal(t, 48*time.Second, lasted)
	assert.Equal(t, 16, steps)

	add(&s, 300, 3*time.Second)
	assert.False(t, s.Times().Longer(1.3), "it is usual now")
	add(&s, 10_000, time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 1, Newest: 1, Usual: 1}, s.Times(), "only the newest count")
}

// The times are the medians of the steps that they name, however many came before.
func TestStepTimesOfTheNewest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7)) // #nosec G404 -- noise
	var s pace.Steps
	var all []float64
	for n := range 2_000 {
		seconds := float64(float32(1 + float64(r.IntN(50))/8)) // many are equal
		s.Add(time.Duration(seconds * float64(time.Second)))
		all = append(all, seconds)
		if n%13 != 0 || n < 70 {
			continue
		}
		of := func(from, to int) float64 { return shared.Median(slices.Clone(all[max(0, n+1-from) : n+1-to])) }
		times := s.Times()
		require.InDelta(t, of(10, 0), times.Newest, 0)
		require.InDelta(t, of(20, 0), times.Recent, 0)
		require.InDelta(t, of(520, 20), times.Usual, 0)
	}
}

// One slow step long before does not make the slowness older.
func TestSlowForLeavesOutliersOut(t *testing.T) {
	var s pace.Steps
	add(&s, 100, time.Second)
	add(&s, 1, time.Minute)
	add(&s, 8, time.Second)
	lasted, _ := s.SlowFor(1, 1.3)
	assert.Zero(t, lasted)
	add(&s, 11, 2*time.Second)
	lasted, _ = s.SlowFor(1, 1.3)
	assert.Equal(t, 22*time.Second, lasted)
}

func TestStepsWithoutLength(t *testing.T) {
	var s pace.Steps
	add(&s, 5, 0)
	add(&s, 5, -time.Second)
	assert.Zero(t, s.Times())
	lasted, _ := s.SlowFor(1, 1.3)
	assert.Zero(t, lasted)
}

// Whatever the distribution of healthy step times is, they are not slow; steps
// that take three times as long are.
func TestHealthyNoiseIsNotSlow(t *testing.T) {
	for name, healthy := range map[string]func(r *rand.Rand, i int) float64{
		"normal":            func(r *rand.Rand, _ int) float64 { return 1 + 0.05*r.NormFloat64() },
		"heavy tail":        func(r *rand.Rand, _ int) float64 { return math.Exp(0.5 * r.NormFloat64()) },
		"long and short":    func(r *rand.Rand, _ int) float64 { return 1 + 2*float64(min(r.IntN(3), 1)) },
		"each tenth long":   func(_ *rand.Rand, i int) float64 { return 1 + 4*float64(i%10/9) },
		"stalls for a time": func(r *rand.Rand, i int) float64 { return 1 + 0.1*r.ExpFloat64() + 5*float64(i%400/395) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				r := rand.New(rand.NewPCG(seed, 7)) // #nosec G404 -- noise
				var s pace.Steps
				for i := range 5_000 {
					s.Add(time.Duration(healthy(r, i) * float64(time.Second)))
					if i%7 == 0 {
						require.False(t, s.Times().Longer(1.3), "step %d", i)
					}
				}
				found := false
				for i := range 40 {
					s.Add(time.Duration(3 * healthy(r, i) * float64(time.Second)))
					found = found || s.Times().Longer(1.3)
				}
				assert.True(t, found)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	median, spread := pace.Spread([]float64{1, 2, 3, 4, 1000})
	assert.InDelta(t, 3, median, 0)
	assert.InDelta(t, 1.4826, spread, 1e-9)
}

// A group of steps counts once, whatever many of its steps have longer work.
func TestLongSteps(t *testing.T) {
	const second = int64(time.Second)
	var p pace.Phases
	add := func(n int, work int64) {
		for range n {
			p.Add([]int64{work}, 2*second, work)
		}
	}
	long := func() float64 {
		typical, _ := p.Typical(0)
		return typical.Long
	}
	add(1, 100*second) // it compiles
	add(299, second)
	assert.Zero(t, long())
	for range 5 {
		add(8, second)
		add(2, 2*second)
	}
	assert.InDelta(t, 5, long(), 0)
	add(200, second)
	add(10, second+second/10)
	assert.InDelta(t, 5, long(), 0, "a small part of the step")
	add(390, second)
	assert.InDelta(t, 4, long(), 0, "of the newest 64 groups")
}

// A phase that takes longer is named, with what it took before.
func TestThePhaseThatGrew(t *testing.T) {
	const second = int64(time.Second)
	var p pace.Phases
	_, ok := p.Growths()
	assert.False(t, ok)
	for i := range 200 {
		load := second / 10
		if i == 50 {
			load *= 1000 // one that does not matter
		}
		p.Add([]int64{load, second / 2, second / 100}, second, 0)
	}
	typical, ok := p.Typical(0)
	assert.True(t, ok)
	assert.InDelta(t, 0.1, typical.Phase, 1e-6)
	assert.InDelta(t, 1, typical.Step, 1e-6)
	assert.InDelta(t, 80, typical.Since, 1e-6, "three blocks, and the newest one")
	for range 30 {
		p.Add([]int64{second, second / 2, second / 10}, 2*second, 0)
	}
	p.Keep(30)
	for range 1000 {
		p.Add([]int64{second, second / 2, second / 10}, 2*second, 0)
	}
	growths, ok := p.Growths()
	require.True(t, ok)
	assert.True(t, growths[0].Grew)
	assert.InDelta(t, 0.1, growths[0].Usual, 1e-6)
	assert.InDelta(t, 1, growths[0].Recent, 1e-6)
	assert.False(t, growths[1].Grew, "as before")
	assert.False(t, growths[2].Grew, "much longer, but a small part")
}

func TestMedian(t *testing.T) {
	assert.Zero(t, shared.Median(nil))
	assert.InDelta(t, 5, shared.Median([]float64{9, 5, 1}), 0)
	assert.InDelta(t, 4, shared.Median([]float64{9, 5, 1, 3}), 0)
}
