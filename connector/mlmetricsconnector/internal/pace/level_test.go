package pace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// steps returns the durations of n steps: a level, multiplied by times from at on, with a
// trend and a spread.
func steps(random *rand.Rand, n, at int, level, times, trend, spread float64) (all []time.Duration) {
	for i := range n {
		seconds := level * (1 + trend*float64(i)/float64(n)) * math.Exp(spread*random.NormFloat64())
		if i >= at {
			seconds *= times
		}
		all = append(all, time.Duration(seconds*1e9))
	}
	return all
}

// found returns after how many steps a shift has lasted for LastingSteps, or -1.
func found(l *Level, all []time.Duration) int {
	for i, d := range all {
		l.Add(d)
		if l.Shift().Steps >= LastingSteps {
			return i
		}
	}
	return -1
}

func TestLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n, at = 4000, 2000
	for name, tt := range map[string]struct {
		level, times, trend, spread float64
		finds                       bool
	}{
		"a twentieth more":         {0.2, 1.05, 0, 0.01, true},
		"on a trend":               {0.2, 1.05, 0.1, 0.01, true},
		"long steps":               {12, 1.05, 0, 0.01, true},
		"a third more, much noise": {2, 1.4, 0, 0.1, true},
		"nothing":                  {0.2, 1, 0, 0.01, false},
		"a trend alone":            {0.2, 1, 0.15, 0.01, false},
		"a hundredth more":         {0.2, 1.01, 0, 0.001, false},
		"a twentieth in noise":     {2, 1.05, 0, 0.5, false},
		"less":                     {0.2, 0.8, 0, 0.01, false},
	} {
		when := found(new(Level), steps(random, n, at, tt.level, tt.times, tt.trend, tt.spread))
		if !tt.finds {
			assert.Equal(t, -1, when, name)
			continue
		}
		assert.Greater(t, when, at, name)
		assert.Less(t, when, at+800, name)
	}
}

// TestShift says what is known of a shift, and that it ends.
func TestShift(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := new(Level)
	assert.InDelta(t, 2000+LastingSteps, found(l, steps(random, 4000, 2000, 0.2, 1.1, 0, 0.01)), 60)
	s := l.Shift()
	assert.InDelta(t, 0.2, s.Usual, 0.002)
	assert.InDelta(t, 0.22, s.Now, 0.002)
	assert.InDelta(t, LastingSteps*0.22, s.Lasted.Seconds(), 5)
	for _, d := range steps(random, 200, 0, 0.2, 1, 0, 0.01) {
		l.Add(d)
	}
	assert.Zero(t, l.Shift(), "as before")
	l = new(Level)
	assert.Equal(t, -1, found(l, steps(random, 2000, 0, 0.25, 1, 0, 0.01)), "another level from the start")
}

// TestPassingShifts: what goes by itself is usual for the run.
func TestPassingShifts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := new(Level)
	for range 5 {
		for _, all := range [][]time.Duration{steps(random, 1000, 0, 0.2, 1, 0, 0.01), steps(random, 160, 0, 0.2, 1.2, 0, 0.01)} {
			assert.Equal(t, -1, found(l, all))
		}
	}
	assert.Greater(t, l.medians.largest, 0.1)
	assert.Equal(t, -1, found(l, steps(random, 2000, 1000, 0.2, 1.1, 0, 0.01)))
	assert.Greater(t, found(l, steps(random, 2000, 1000, 0.2, 1.5, 0, 0.01)), 1000)
}

// TestLongerBlocks has a training of which a quarter of the blocks take longer, by up to a
// tenth, as with sequences of several lengths.
func TestLongerBlocks(t *testing.T) {
	slow := 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		longer := func(all []time.Duration) []time.Duration {
			for block := range slices.Chunk(all, levelSteps) {
				if times := 1.06 + 0.04*random.Float64(); random.IntN(4) == 0 {
					for i := range block {
						block[i] = time.Duration(float64(block[i]) * times)
					}
				}
			}
			return all
		}
		l := new(Level)
		assert.Equal(t, -1, found(l, longer(steps(random, 8000, 0, 0.6, 1, 0, 0.01))), seed)
		if found(l, longer(steps(random, 3000, 0, 0.6, 1.05, 0, 0.01))) >= 0 {
			slow++
		}
	}
	assert.GreaterOrEqual(t, slow, 19)
}

// TestDrift finds steps that become longer slowly, and neither that the short ones of steps of two
// lengths are no more, nor that they are fewer.
func TestDrift(t *testing.T) {
	const n = 2000
	shape := func(seconds func(i int) float64) Shift {
		random := rand.New(rand.NewPCG(1, 2))
		l := new(Level)
		for i := range n {
			l.Add(time.Duration(1e9 * seconds(i) * math.Exp(0.05*random.NormFloat64())))
		}
		return l.Drift()
	}
	grown := shape(func(i int) float64 { return 12 * (1 + 0.5*float64(i)/n) })
	assert.InDelta(t, 12, grown.Usual, 1)
	assert.InDelta(t, 17.5, grown.Now, 1)
	assert.Greater(t, grown.Steps, n/4)
	assert.Zero(t, shape(func(int) float64 { return 12 }))
	// In some epochs the step before a validation is short.
	assert.Zero(t, shape(func(i int) float64 {
		if i%10 == 0 && i < n/2 {
			return 6
		}
		return 12
	}))
	// Fewer and fewer sequences are short.
	assert.Zero(t, shape(func(i int) float64 {
		if i%10 == 0 || i%10 < 8*(n-i)/n {
			return 6
		}
		return 12
	}))
	assert.Zero(t, shape(func(i int) float64 { return 12 * (1 + 0.15*float64(i)/n) }), "less than a fifth")
}

// TestMeans has a trainer that reports the mean of 32 steps for each of them.
func TestMeans(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := new(Level)
	for i, mean := range steps(random, 300, 150, 0.2, 1.05, 0, 0.01) {
		for range 32 {
			l.Add(mean)
		}
		if i < 150 {
			assert.Zero(t, l.Shift())
		}
	}
	assert.GreaterOrEqual(t, l.Shift().Steps, LastingSteps)
}

// TestHostileSteps has durations that nobody takes.
func TestHostileSteps(t *testing.T) {
	l := new(Level)
	for _, d := range []time.Duration{0, -1, math.MaxInt64, 1, math.MinInt64} {
		for range 2000 {
			l.Add(d)
		}
	}
	assert.False(t, math.IsNaN(l.Shift().Now))
}
