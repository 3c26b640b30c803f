package wallclock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWindow(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	var w Window
	_, ok := w.Ratios(now)
	assert.False(t, ok, "no time was spent")

	add := func(state State, d time.Duration) {
		var spent Spent
		spent[state] = d.Nanoseconds()
		w.Add(&spent, now)
	}
	add(Productive, 3*time.Minute)
	now = now.Add(10 * time.Minute)
	add(LoadingData, time.Minute)
	ratios, ok := w.Ratios(now)
	assert.True(t, ok)
	assert.InDelta(t, 0.75, ratios[Productive], 1e-9)
	assert.InDelta(t, 0.25, ratios[LoadingData], 1e-9)
	assert.InDelta(t, -1, ratios[Checkpointing], 0, "the run was never in it")

	now = now.Add(6 * time.Minute)
	ratios, ok = w.Ratios(now)
	assert.True(t, ok)
	assert.InDelta(t, 0, ratios[Productive], 0, "16 minutes ago")
	assert.InDelta(t, 1, ratios[LoadingData], 1e-9)

	now = now.Add(10 * time.Minute)
	_, ok = w.Ratios(now)
	assert.False(t, ok, "all of it is long ago")

	now = now.Add(-24 * time.Hour)
	add(Productive, time.Minute)
	ratios, ok = w.Ratios(now)
	assert.True(t, ok, "the clock was set back")
	assert.InDelta(t, 1, ratios[Productive], 1e-9)
}

// However often time is added, the fractions add up to 1.
func TestRatiosAddUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	var w Window
	for n := range 1000 {
		var spent Spent
		spent[n%int(states)] = int64(n)
		now = now.Add(7 * time.Second)
		w.Add(&spent, now)
		if ratios, ok := w.Ratios(now); ok {
			sum := 0.0
			for _, ratio := range ratios {
				sum += max(ratio, 0)
			}
			assert.InDelta(t, 1, sum, 1e-9)
		}
	}
}
