package loss_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/loss"
)

// training adds the losses of steps, one a second, and counts what is found.
type training struct {
	loss.Curve
	step     int
	spikes   []loss.Found
	diverged int
}

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (c *training) now() time.Time { return begin.Add(time.Duration(c.step) * time.Second) }

func (c *training) add(value float64) {
	c.step++
	c.Add(c.now().UnixNano(), value, c.now())
	if spike := c.TakeSpike(); spike != nil {
		c.spikes = append(c.spikes, *spike)
	}
	if c.Diverged() != nil {
		c.diverged++
	}
}

// student returns a value of Student's t distribution with 3 degrees of freedom.
func student(r *rand.Rand) float64 {
	sum := 0.0
	for range 3 {
		x := r.NormFloat64()
		sum += x * x
	}
	return r.NormFloat64() / math.Sqrt(sum/3)
}

// A norm of a gradient spikes from five times the usual one on, and is not finite any more once
// 32 in a row are not: other batches may double it, and mixed precision skips steps.
func TestNorms(t *testing.T) {
	c := training{Curve: loss.OfNorms()}
	random := rand.New(rand.NewPCG(1, 2))
	usual := func(steps int, times float64) {
		for range steps {
			c.add(times * math.Exp(0.1*random.NormFloat64()))
		}
	}
	for range 31 {
		c.add(math.Inf(1))
	}
	assert.Nil(t, c.Nonfinite())
	usual(300, 1)
	usual(100, 4)
	assert.Empty(t, c.spikes)
	usual(300, 1)
	usual(3, 8)
	require.Len(t, c.spikes, 1)
	assert.InDelta(t, 8, c.spikes[0].Value, 3)
	usual(32, 1)
	assert.Nil(t, c.Nonfinite())
	began := c.now()
	for range 31 {
		c.add(math.NaN())
	}
	assert.Nil(t, c.Nonfinite())
	c.add(math.NaN())
	broken := c.Nonfinite()
	require.NotNil(t, broken)
	assert.Equal(t, began.Add(time.Second), broken.Onset)
	assert.Equal(t, int64(32), broken.Count)
	usual(1, 1)
	assert.Nil(t, c.Nonfinite())
}

// A healthy loss has neither a spike nor diverges, however noisy it is.
func TestAHealthyLoss(t *testing.T) {
	falling := func(i int) float64 { return 2 + 8*math.Exp(-float64(i)/2000) }
	for name, healthy := range map[string]func(r *rand.Rand, c *training) float64{
		"falls, with noise": func(r *rand.Rand, c *training) float64 { return falling(c.step) * math.Exp(0.05*r.NormFloat64()) },
		"heavy tails":       func(r *rand.Rand, c *training) float64 { return falling(c.step) * math.Exp(0.05*student(r)) },
		"much noise":        func(r *rand.Rand, _ *training) float64 { return math.Exp(r.NormFloat64()) },
		"a plateau that ends with a lower learning rate": func(r *rand.Rand, c *training) float64 {
			level, rate := 2.0, 1e-3
			if c.step > 10_000 {
				level, rate = 1.2, 1e-4
			}
			c.Rate(rate)
			return level * math.Exp(0.03*r.NormFloat64())
		},
		"warm restarts": func(r *rand.Rand, c *training) float64 {
			at := float64(c.step%4000) / 4000
			c.Rate(1e-5 + 1e-3*(1+math.Cos(math.Pi*at)))
			return (1.5 - 0.6*at) * math.Exp(0.03*r.NormFloat64())
		},
		"epochs that memorize": func(r *rand.Rand, c *training) float64 {
			return 2 * math.Pow(0.8, float64(c.step/3000)) * math.Exp(0.1*r.NormFloat64())
		},
		"a bad batch now and then": func(r *rand.Rand, c *training) float64 {
			if c.step%100 < 2 {
				return 10
			}
			return 2 * math.Exp(0.05*r.NormFloat64())
		},
		"rewards, of any sign": func(r *rand.Rand, c *training) float64 { return float64(c.step)/5000 + r.NormFloat64() },
		"wanders": func() func(r *rand.Rand, c *training) float64 {
			x := 0.0
			return func(r *rand.Rand, _ *training) float64 {
				x = 0.98*x + 0.01*r.NormFloat64()
				return 2 * math.Exp(x+0.03*r.NormFloat64())
			}
		}(),
		"constant": func(*rand.Rand, *training) float64 { return 0.6931 },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				r := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- noise
				var c training
				for range 20_000 {
					c.add(healthy(r, &c))
				}
				assert.Empty(t, c.spikes)
				assert.Zero(t, c.diverged)
			}
		})
	}
}

func steady(c *training, r *rand.Rand, n int, level float64) {
	for range n {
		c.add(level * math.Exp(0.05*r.NormFloat64()))
	}
}

// Three high losses are a spike, once.
func TestASpike(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- noise
	var c training
	steady(&c, r, 5000, 2)
	began := c.now().Add(time.Second)
	for _, high := range []float64{4, 6, 5, 4, 3} {
		c.add(high)
	}
	steady(&c, r, 100, 2)
	require.Len(t, c.spikes, 1)
	spike := c.spikes[0]
	assert.Equal(t, began, spike.Onset)
	assert.InDelta(t, 6, spike.Value, 0)
	assert.InDelta(t, 2, spike.Usual, 0.05)
	assert.Equal(t, int64(256), spike.Count)
	assert.Greater(t, spike.Spreads, 8.)
	steady(&c, r, 20, 6)
	assert.Len(t, c.spikes, 1, "the same hour")
	steady(&c, r, 4000, 2)
	steady(&c, r, 20, 6)
	assert.Len(t, c.spikes, 2)
	assert.Zero(t, c.diverged)
}

// A loss that rises and stays high has diverged since it rose, until it is low or
// usual again.
func TestDivergence(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1)) // #nosec G404 -- noise
	var c training
	steady(&c, r, 1024, 2)
	rose := c.now()
	for i := range 1000 {
		c.add(2 * math.Exp(float64(i)/1000) * math.Exp(0.05*r.NormFloat64()))
	}
	d := c.Diverged()
	require.NotNil(t, d)
	assert.WithinRange(t, d.Onset, rose, rose.Add(500*time.Second))
	assert.InDelta(t, 2, d.Usual, 0.1)
	assert.Greater(t, d.Value, 4.)
	steady(&c, r, 128, 2)
	assert.Nil(t, c.Diverged())

	steady(&c, r, 1280, 3)
	assert.NotNil(t, c.Diverged())
	steady(&c, r, 3200, 3)
	assert.Nil(t, c.Diverged(), "it is usual now")
}

// A loss that has risen twice and came back may do so again, but not higher.
func TestRisesOfItsOwn(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1)) // #nosec G404 -- noise
	var c training
	rise := func(level float64) (diverged bool) {
		steady(&c, r, 640, 2)
		for range 160 {
			steady(&c, r, 1, level)
			diverged = diverged || c.Diverged() != nil
		}
		return diverged
	}
	assert.True(t, rise(4))
	assert.True(t, rise(4))
	assert.False(t, rise(4))
	assert.True(t, rise(7))
}

// A loss that stays exactly the same has frozen, unless it often did.
func TestAFrozenLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1)) // #nosec G404 -- noise
	var c, rounded training
	steady(&c, r, 1000, 2)
	since := c.now().Add(time.Second)
	for range 64 {
		c.add(2)
		assert.Nil(t, c.Frozen())
	}
	c.add(2)
	frozen := c.Frozen()
	require.NotNil(t, frozen)
	assert.Equal(t, []any{since, 2.0, int64(65)}, []any{frozen.Onset, frozen.Value, frozen.Count})
	steady(&c, r, 1, 2)
	assert.Nil(t, c.Frozen())
	for range 1000 {
		rounded.add(math.Round(20*math.Exp(0.01*r.NormFloat64())) / 10)
	}
	for range 200 {
		rounded.add(2)
	}
	assert.Nil(t, rounded.Frozen())
}

// A restart forgets what is usual.
func TestARestart(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1)) // #nosec G404 -- noise
	var c training
	steady(&c, r, 2000, 1)
	c.Restart()
	steady(&c, r, 2000, 3)
	assert.Empty(t, c.spikes)
	assert.Zero(t, c.diverged)
}

// One loss that is not finite is chance; two in a row, or three of twenty, are not.
func TestNonfinite(t *testing.T) {
	is := func(c *training) bool { return c.Nonfinite() != nil }
	var c training
	assert.False(t, is(&c))
	for range 40 {
		c.add(1)
	}
	c.add(math.NaN())
	assert.False(t, is(&c))
	c.Add(c.now().UnixNano(), math.Inf(1), c.now())
	assert.False(t, is(&c), "a task of the same step")
	first := c.now()
	c.add(1)
	c.add(math.Inf(1))
	assert.False(t, is(&c))
	c.add(1)
	c.Add(c.now().UnixNano(), math.NaN(), c.now())
	bad := c.Nonfinite()
	require.NotNil(t, bad)
	assert.Equal(t, []any{first, 3.0, int64(20)}, []any{bad.Onset, bad.Value, bad.Count})
	for range 20 {
		c.add(1)
	}
	assert.False(t, is(&c))
	c.add(math.NaN())
	second := c.now()
	c.add(math.NaN())
	again := c.Nonfinite()
	require.NotNil(t, again)
	assert.Equal(t, second, again.Onset)

	var first2 training
	first2.add(math.NaN())
	first2.add(math.NaN())
	assert.True(t, is(&first2), "the first ones")
}

// FuzzCurve shows that no sequence of values breaks a curve.
func FuzzCurve(f *testing.F) {
	f.Add(int64(1), 1.0, 2.0, uint16(700))
	f.Add(int64(0), math.MaxFloat64, -math.MaxFloat64, uint16(999))
	f.Add(int64(-5), 5e-324, 0.0, uint16(400))
	f.Fuzz(func(t *testing.T, at int64, x, y float64, n uint16) {
		var c loss.Curve
		for i := range int64(n % 2000) {
			v := x
			if i%7 == 0 {
				v = y
			}
			c.Add(at+i, v, begin.Add(time.Duration(i)*time.Second))
			c.Rate(v)
			if d := c.Diverged(); d != nil && d.Onset.IsZero() {
				t.Fatal("no onset")
			}
			if s := c.TakeSpike(); s != nil && (s.Onset.IsZero() || s.Count == 0) {
				t.Fatalf("%+v", s)
			}
		}
		c.Nonfinite()
	})
}

// Adding a loss allocates nothing.
func TestAllocations(t *testing.T) {
	var c training
	at := int64(0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		at++
		c.Add(at, 2, begin)
		c.Rate(1e-3)
	}))
}

func BenchmarkCurve(b *testing.B) {
	var c loss.Curve
	at := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		at++
		c.Add(at, 2+float64(at%17)/100, begin)
	}
}
