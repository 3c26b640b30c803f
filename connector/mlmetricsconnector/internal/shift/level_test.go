package shift_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// traffic are requests of a service in virtual time.
type traffic struct {
	*rand.Rand
	level shift.Level
	rule  shift.Rule
	now   time.Time
	// perMinute is the mean number of requests, spread the standard deviation of
	// the logarithms of their values.
	perMinute, spread float64
	// factor multiplies the values, work what there is to do.
	factor, work float64
	version      uint8
}

func newTraffic(seed uint64) *traffic {
	return &traffic{
		Rand: rand.New(rand.NewPCG(seed, 1)), rule: shift.Rule{Least: math.Log(1.75), Blocks: 5, Demand: true},
		now: start, perMinute: 40, spread: 0.5, factor: 1, work: 1,
	}
}

// request adds the next request: arrivals are a Poisson process.
func (g *traffic) request() {
	g.now = g.now.Add(time.Duration(g.ExpFloat64() / g.perMinute * float64(time.Minute)))
	value := math.Log(g.factor) + g.spread*g.NormFloat64()
	g.level.Add(g.now, shift.Observation{Value: value, Work: [2]float64{math.Log(g.work), math.NaN()}, Version: g.version}, &g.rule)
}

func (g *traffic) until(end time.Time) {
	for g.now.Before(end) {
		g.request()
	}
}

// After a night of shorter ones, values are as they were the day before.
func TestALevelOfTheDayBefore(t *testing.T) {
	g := newTraffic(3)
	g.until(start.Add(4 * time.Hour))
	g.factor = 0.4
	g.until(start.Add(7 * time.Hour))
	g.factor = 1
	for g.now.Before(start.Add(9 * time.Hour)) {
		g.request()
		require.False(t, g.level.Shift().Lasts)
	}
	g.factor = 2
	g.until(start.Add(10 * time.Hour))
	assert.True(t, g.level.Shift().Lasts)
}

func TestAShift(t *testing.T) {
	g := newTraffic(1)
	g.until(start.Add(time.Hour))
	require.False(t, g.level.Shift().Lasts)
	onset := g.now
	g.factor, g.version = 2, 1
	g.until(onset.Add(8 * time.Minute))
	s := g.level.Shift()
	require.True(t, s.Lasts)
	assert.WithinDuration(t, onset, s.Since, 2*time.Minute)
	assert.InDelta(t, 2, math.Exp(s.Value-s.Usual), 0.6)
	assert.GreaterOrEqual(t, s.ByVersion[1].Count, 20)
	assert.False(t, s.Demand || s.Works[0])

	g.until(onset.Add(3 * time.Hour))
	assert.True(t, s.Lasts, "it does not become usual soon")
	g.factor = 1
	g.until(onset.Add(3*time.Hour + 20*time.Minute))
	assert.False(t, s.Lasts)
}

// After a day a shifted level is usual, and one back is no problem.
func TestANewLevelBecomesUsual(t *testing.T) {
	g := newTraffic(2)
	g.until(start.Add(time.Hour))
	g.factor = 3
	g.until(start.Add(2 * time.Hour))
	require.True(t, g.level.Shift().Lasts)
	g.until(start.Add(27 * time.Hour))
	assert.False(t, g.level.Shift().Lasts)
	g.factor = 9
	g.until(start.Add(28 * time.Hour))
	assert.True(t, g.level.Shift().Lasts)
}

// A version that a part of the requests has is found, although the median of all
// is as usual.
func TestAShiftOfOneVersion(t *testing.T) {
	g := newTraffic(3)
	g.perMinute = 300
	g.until(start.Add(time.Hour))
	for onset := g.now; g.now.Before(onset.Add(15 * time.Minute)); {
		if g.version, g.factor = 1, 1; g.IntN(100) < 40 {
			g.version, g.factor = 2, 4
		}
		g.request()
	}
	s := g.level.Shift()
	require.True(t, s.Lasts)
	assert.InDelta(t, math.Log(4), s.ByVersion[2].Value, 0.5)
	assert.InDelta(t, 0, s.ByVersion[1].Value, 0.5)
	assert.InDelta(t, math.Log(4), s.Value, 0.5)
}

// What grows no faster than the work or the demand is no shift.
func TestMoreToDo(t *testing.T) {
	for name, change := range map[string]func(*traffic){
		"work":               func(g *traffic) { g.work, g.factor = 3, 2.8 },
		"demand":             func(g *traffic) { g.perMinute, g.factor = 160, 2.5 },
		"a little":           func(g *traffic) { g.factor = 1.4 },
		"less":               func(g *traffic) { g.factor = 0.3 },
		"no effect of load":  func(g *traffic) { g.perMinute = 400 },
		"no effect of size":  func(g *traffic) { g.work = 10 },
		"hardly any traffic": func(g *traffic) { g.perMinute, g.factor = 0.5, 1.2 },
	} {
		t.Run(name, func(t *testing.T) {
			g := newTraffic(4)
			g.until(start.Add(90 * time.Minute))
			change(g)
			for end := g.now.Add(3 * time.Hour); g.now.Before(end); {
				g.request()
				require.False(t, g.level.Shift().Lasts)
			}
		})
	}
	g := newTraffic(5)
	g.until(start.Add(time.Hour))
	g.work, g.factor = 2, 5
	g.until(g.now.Add(10 * time.Minute))
	assert.True(t, g.level.Shift().Lasts, "it grows faster than the work")
	assert.True(t, g.level.Shift().Works[0])
}

// Healthy services show no shift for weeks: heavy tails, correlated load, a day
// and a night, bursts, and services with little traffic.
func TestHealthyLevels(t *testing.T) {
	days := 3
	if testing.Short() {
		days = 2
	}
	for service := range 24 {
		g := newTraffic(uint64(100 + service))
		g.spread = []float64{0.2, 0.5, 0.9, 1.3}[service%4]
		usual := []float64{0.5, 4, 40}[service%3]
		load, burst := 0.0, 0
		for end := start.Add(time.Duration(days) * 24 * time.Hour); g.now.Before(end); {
			if g.IntN(20) == 0 {
				load = 0.98*load + 0.025*g.NormFloat64()
			}
			if burst--; burst < -20_000 && g.IntN(5000) == 0 {
				burst = 300
			}
			day := math.Sin(2 * math.Pi * g.now.Sub(start).Hours() / 24)
			g.perMinute, g.factor = usual*math.Exp(day), math.Exp(load+0.3*day)
			if burst > 0 {
				g.perMinute, g.factor = 4*g.perMinute, 2*g.factor
			}
			// Now and then a request takes a hundred times as long.
			if g.IntN(100) == 0 {
				g.factor *= 100
			}
			g.request()
			if g.level.Shift().Lasts {
				t.Fatalf("service %d has a shift at %s: %+v", service, g.now, *g.level.Shift())
			}
		}
	}
}
