package growth_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/growth"
)

const limit = 80.0

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// Memory that grows by a unit in ten minutes reaches its limit when it should.
func TestMemoryThatGrows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- noise
	var trend growth.Trend
	for i := range 4 * 100 {
		at := begin.Add(time.Duration(i) * 15 * time.Second)
		trend.Add(at, 40+float64(i)/40+0.2*r.NormFloat64())
		if _, ok := trend.Forecast(limit); i < 4*29 {
			require.False(t, ok, "too few samples")
		}
	}
	f, ok := trend.Forecast(limit)
	require.True(t, ok)
	assert.Equal(t, 60, f.Count)
	assert.Equal(t, 59*time.Minute, f.Window)
	assert.InDelta(t, 6, f.PerHour, 0.5)
	assert.InDelta(t, 5, f.Left.Hours(), 0.5)
	trend.Reset()
	_, ok = trend.Forecast(limit)
	assert.False(t, ok)
}

func TestHealthyMemory(t *testing.T) {
	for name, memory := range map[string]func(r *rand.Rand, minute float64) float64{
		"constant":           func(*rand.Rand, float64) float64 { return 70 },
		"noise":              func(r *rand.Rand, _ float64) float64 { return 60 + 5*r.NormFloat64() },
		"a cache that fills": func(_ *rand.Rand, m float64) float64 { return 70 - 50*math.Exp(-m/10) },
		"longer sequences":   func(r *rand.Rand, m float64) float64 { return 30 + 6*math.Log(1+m) + r.Float64() },
		"steps":              func(_ *rand.Rand, m float64) float64 { return 40 + 10*math.Floor(m/90) },
		"up and down":        func(_ *rand.Rand, m float64) float64 { return 50 + 20*math.Mod(m, 20)/20 },
		"shrinks":            func(_ *rand.Rand, m float64) float64 { return 70 - m/100 },
		"grows, but slowly":  func(r *rand.Rand, m float64) float64 { return 10 + m/20 + 0.01*r.Float64() },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- noise
			var trend growth.Trend
			for minute := range 600 {
				trend.Add(begin.Add(time.Duration(minute)*time.Minute), memory(r, float64(minute)))
				_, ok := trend.Forecast(limit)
				require.False(t, ok, "minute %d", minute)
			}
		})
	}
}

// A clock that jumps begins a new trend.
func TestAClockThatJumps(t *testing.T) {
	var trend growth.Trend
	for _, from := range []time.Duration{0, 24 * time.Hour, -24 * time.Hour} {
		for i := range 20 {
			trend.Add(begin.Add(from+time.Duration(i)*time.Minute), 40+float64(i))
			_, ok := trend.Forecast(limit)
			assert.False(t, ok)
		}
	}
}

// A forecast is computed again when a sample is added or the limit is another one, not each
// time that somebody asks.
func TestAForecastIsComputedOnce(t *testing.T) {
	var trend growth.Trend
	add := func(from, to int) {
		for i := from; i < to; i++ {
			trend.Add(begin.Add(time.Duration(i)*time.Minute), 40+float64(i)/4)
		}
	}
	add(0, 40)
	first, ok := trend.Forecast(limit)
	require.True(t, ok)
	assert.Zero(t, testing.AllocsPerRun(10, func() { _, _ = trend.Forecast(limit) }))
	add(40, 41)
	next, ok := trend.Forecast(limit)
	require.True(t, ok)
	assert.Equal(t, first.Count+1, next.Count)
	higher, ok := trend.Forecast(limit + 1)
	require.True(t, ok)
	assert.Greater(t, higher.Left, next.Left)
	trend.Reset()
	_, ok = trend.Forecast(limit)
	assert.False(t, ok)
}
