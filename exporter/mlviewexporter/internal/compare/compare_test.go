package compare_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/compare"
)

// training returns the loss of a run whose noise depends on the seed: a value for
// each of every steps, with noise that remembers its last value.
func training(seed uint64, steps, every int, memory float64, extra func(step float64) float64) (c compare.Curve) {
	random, kept := rand.New(rand.NewPCG(seed, 1)), 0.0
	for step := 1; step <= steps; step += every {
		at := float64(step)
		kept = memory*kept + math.Sqrt(1-memory*memory)*0.05*random.NormFloat64()
		c.At = append(c.At, at)
		c.Values = append(c.Values, 1+2*math.Exp(-at/300)+kept+extra(at))
	}
	return c
}

func none(float64) float64 { return 0 }

func TestEqualRunsDoNotPart(t *testing.T) {
	for name, memory := range map[string]float64{"independent noise": 0, "noise that lasts": 0.6} {
		t.Run(name, func(t *testing.T) {
			const pairs = 300
			parted := 0
			for seed := range uint64(pairs) {
				p, ok := compare.Part(training(2*seed, 2000, 3, memory, none), training(2*seed+1, 2000, 7, memory, none))
				require.True(t, ok)
				if p.Parted {
					parted++
				}
			}
			t.Logf("%d of %d pairs of equal runs part", parted, pairs)
			assert.LessOrEqual(t, parted, pairs/50)
		})
	}
}

func TestRunsPartWhereOneChanges(t *testing.T) {
	changed := func(size float64) func(float64) float64 {
		return func(step float64) float64 {
			if step < 1000 {
				return 0
			}
			return size
		}
	}
	for name, size := range map[string]float64{"higher": 0.2, "lower": -0.2, "much higher": 3} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for seed := range uint64(100) {
				p, ok := compare.Part(training(2*seed, 2000, 5, 0, changed(size)), training(2*seed+1, 2000, 5, 0, none))
				require.True(t, ok)
				if p.Parted && p.At > 900 && p.At < 1100 {
					found++
					assert.Greater(t, math.Abs(p.Value-p.Other), p.Band)
					assert.Equal(t, size > 0, p.Value > p.Other)
				}
			}
			assert.GreaterOrEqual(t, found, 98, "of 100")
		})
	}
}

func TestASpikeIsNoParting(t *testing.T) {
	spike := func(step float64) float64 {
		if step > 500 && step < 520 {
			return 5
		}
		return 0
	}
	p, ok := compare.Part(training(1, 2000, 5, 0, spike), training(2, 2000, 5, 0, none))
	require.True(t, ok)
	assert.False(t, p.Parted)
	assert.Zero(t, p.At)
}

func TestOnlyCommonPositionsCount(t *testing.T) {
	long, short := training(1, 5000, 1, 0, none), training(2, 400, 2, 0, none)
	p, ok := compare.Part(long, short)
	require.True(t, ok)
	assert.GreaterOrEqual(t, p.From, 1.0)
	assert.LessOrEqual(t, p.To, 400.0)
	assert.LessOrEqual(t, p.Positions, 240)
}

func TestTooFewPositionsAreNotJudged(t *testing.T) {
	few := training(1, 19, 1, 0, none)
	for name, other := range map[string]compare.Curve{
		"few":         few,
		"none":        {},
		"elsewhere":   {At: []float64{1e6, 1e6 + 1}, Values: []float64{1, 1}},
		"no numbers":  {At: make([]float64, 100), Values: make([]float64, 100)},
		"no position": {At: []float64{math.NaN()}, Values: []float64{1}},
		"no value":    {At: []float64{1}},
	} {
		_, ok := compare.Part(training(1, 1000, 1, 0, none), other)
		assert.False(t, ok, name)
	}
}

func FuzzPart(f *testing.F) {
	f.Add(uint64(1), uint16(30), uint16(40), 1.0)
	f.Add(uint64(2), uint16(0), uint16(1000), math.Inf(1))
	f.Fuzz(func(t *testing.T, seed uint64, n, m uint16, size float64) {
		random := rand.New(rand.NewPCG(seed, 2))
		curve := func(n uint16) (c compare.Curve) {
			at := 0.0
			for range n % 2000 {
				at += size * (random.Float64() - 0.1)
				c.At, c.Values = append(c.At, at), append(c.Values, size*random.NormFloat64())
			}
			return c
		}
		p, ok := compare.Part(curve(n), curve(m))
		if !ok {
			return
		}
		if p.Positions < 20 || p.Positions > 240 || p.From > p.To {
			t.Errorf("%+v", p)
		}
		if p.Parted && (p.At < p.From || p.At > p.To) {
			t.Errorf("parted at %v, outside of %v to %v", p.At, p.From, p.To)
		}
	})
}
