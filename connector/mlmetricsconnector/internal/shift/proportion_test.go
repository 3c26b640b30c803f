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

var rule = shift.ProportionRule{Least: 0.05, Times: 3, Count: 5, Alone: 0.5, AloneCount: 3}

// outcomes adds n outcomes, one a second, of which each one in of is of the kind,
// and returns the time of the last one; with 0 none is.
func outcomes(p *shift.Proportion, from time.Time, n, of int) time.Time {
	for i := range n {
		from = from.Add(time.Second)
		p.Add(from, of > 0 && i%of == of-1, 0)
	}
	return from
}

func TestProportions(t *testing.T) {
	var p shift.Proportion
	assert.Equal(t, shift.Proportions{Recent: -1, Usual: -1}, p.Find(start, &rule))

	now := outcomes(&p, start, 199, 0)
	found := p.Find(now, &rule)
	assert.InDelta(t, 0, found.Recent, 0)
	assert.InDelta(t, -1, found.Usual, 0, "99 are not usual yet")
	now = outcomes(&p, now, 1, 0)
	assert.InDelta(t, 0, p.Find(now, &rule).Usual, 0)

	began := now.Add(10 * time.Second)
	now = outcomes(&p, now, 40, 10)
	found = p.Find(now, &rule)
	assert.InDelta(t, 0.04, found.Recent, 1e-9)
	assert.False(t, found.Shifted)
	now = outcomes(&p, now, 80, 4)
	found = p.Find(now, &rule)
	assert.InDelta(t, 0.22, found.Recent, 1e-9)
	assert.True(t, found.Shifted)
	assert.WithinDuration(t, began, found.Since, 50*time.Second)
	assert.Positive(t, found.Window)

	as := found
	found = p.Find(now.Add(16*time.Minute), &rule)
	assert.Equal(t, as, found, "nothing newer shows that it is over")
	now = outcomes(&p, now, 5000, 0)
	assert.False(t, p.Find(now, &rule).Shifted)
	found = p.Find(now, &rule)
	assert.InDelta(t, 0, found.Usual, 0, "only the newest count")
	assert.InDelta(t, -1, p.Find(now.Add(16*time.Minute), &rule).Recent, 0, "none of late")
}

// Where few outcomes come, the newest of a day show a shift; a burst that is over shows none,
// and a small shift is found against many earlier outcomes.
func TestProportionsOverLongerTimes(t *testing.T) {
	each := func(p *shift.Proportion, from time.Time, n int, gap time.Duration, is func(i int) bool) time.Time {
		for i := range n {
			from = from.Add(gap)
			p.Add(from, is(i), 0)
		}
		return from
	}
	never, always := func(int) bool { return false }, func(int) bool { return true }

	var rare shift.Proportion
	now := each(&rare, start, 60, 20*time.Minute, never)
	assert.False(t, rare.Find(now, &rule).Shifted)
	now = each(&rare, now, 12, 20*time.Minute, always)
	assert.True(t, rare.Find(now, &rule).Shifted)
	now = each(&rare, now, 12, 20*time.Minute, never)
	assert.False(t, rare.Find(now, &rule).Shifted)

	var burst shift.Proportion
	now = each(&burst, start, 1000, 20*time.Second, never)
	now = each(&burst, now, 10, time.Second, always)
	now = each(&burst, now, 60, 20*time.Second, never)
	assert.False(t, burst.Find(now, &rule).Shifted, "it was 20 minutes ago")

	var slow shift.Proportion
	now = each(&slow, start, 5000, 5*time.Second, func(i int) bool { return i%100 == 0 })
	now = each(&slow, now, 400, 5*time.Second, func(i int) bool { return i%15 == 0 })
	assert.True(t, slow.Find(now, &rule).Shifted)
}

// A small share that goes on is a shift, and lasts while a hundred outcomes have none of the
// kind; as many that come together are none.
func TestASteadyProportion(t *testing.T) {
	steady := shift.ProportionRule{Least: 0.02, Times: 5, Count: 8, Steady: true}
	var p, burst shift.Proportion
	now := outcomes(&p, start, 3000, 0)
	outcomes(&burst, start, 3000, 0)
	outcomes(&burst, now, 10, 1)
	end := outcomes(&burst, now.Add(10*time.Second), 290, 0)
	for _, at := range []time.Time{now.Add(10 * time.Second), end} {
		assert.False(t, burst.Find(at, &steady).Shifted)
	}
	now = outcomes(&p, now, 300, 30)
	assert.True(t, p.Find(now, &steady).Shifted)
	now = outcomes(&p, now, 100, 0)
	assert.True(t, p.Find(now, &steady).Shifted)
	now = outcomes(&p, now, 400, 0)
	assert.False(t, p.Find(now, &steady).Shifted)
}

// A version that few requests go to lasts as long as it fails.
func TestAProportionOfAVersionLasts(t *testing.T) {
	var p shift.Proportion
	now := outcomes(&p, start, 1000, 0)
	found := shift.Proportions{}
	for i := range 2000 {
		now = now.Add(time.Second)
		version := uint8(1)
		if i%20 == 0 {
			version = 2
		}
		p.Add(now, version == 2, version)
		was := found.Shifted
		found = p.Find(now, &rule)
		assert.True(t, found.Shifted || !was, "it flaps at %d", i)
	}
	assert.True(t, found.Shifted)
	assert.Equal(t, uint8(2), found.Only)
}

func TestWhichProportionsHaveShifted(t *testing.T) {
	for name, tt := range map[string]struct {
		usual, usualOf, recent, recentOf int
		want                             bool
	}{
		"as usual":                        {1000, 10, 100, 10, false},
		"twice as often":                  {1000, 20, 100, 10, false},
		"three times as often, by chance": {1000, 30, 100, 10, false},
		"six times as often for longer":   {700, 50, 400, 8, true},
		"a great shift in few":            {1000, 0, 25, 4, true},
		"a small shift in many":           {700, 0, 400, 19, true},
		"too few":                         {1000, 0, 400, 25, false},
		"the first ones":                  {0, 0, 6, 2, true},
		"the first ones, less often":      {0, 0, 9, 3, false},
		"two of two":                      {0, 0, 2, 1, false},
		"an outage":                       {300, 0, 6, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			var p shift.Proportion
			now := outcomes(&p, start, tt.usual, tt.usualOf)
			now = outcomes(&p, now, tt.recent, tt.recentOf)
			assert.Equal(t, tt.want, p.Find(now, &rule).Shifted)
		})
	}
}

// A shift that goes on does not become usual, and ends when outcomes are as usual
// again.
func TestAShiftOfAProportionThatGoesOn(t *testing.T) {
	var p shift.Proportion
	now := outcomes(&p, start, 500, 0)
	for range 50 {
		now = outcomes(&p, now, 100, 8)
		found := p.Find(now, &rule)
		require.True(t, found.Shifted)
		assert.InDelta(t, 0, found.Usual, 0)
	}
	now = outcomes(&p, now, 100, 0)
	assert.False(t, p.Find(now, &rule).Shifted)
}

// One version of several is named, also where so few requests go to it that all
// together are nearly as usual.
func TestAProportionOfOneVersion(t *testing.T) {
	for name, share := range map[string]int{"a half": 2, "one in ten": 10} {
		t.Run(name, func(t *testing.T) {
			var p shift.Proportion
			now := start
			for range 700 {
				now = now.Add(time.Second)
				p.Add(now, false, 1)
			}
			for i := range 400 {
				now = now.Add(time.Second)
				if i%share == 0 {
					p.Add(now, i/share%3 == 0, 2)
				} else {
					p.Add(now, false, 1)
				}
			}
			found := p.Find(now, &rule)
			require.True(t, found.Shifted)
			assert.Equal(t, uint8(2), found.Only)
			assert.Zero(t, found.ByVersion[1].Of)
			assert.InDelta(t, 0.33, found.ByVersion[2].Ratio(), 0.03)
		})
	}
}

// Healthy services fail now and then for weeks, some more often than others, by
// day and by night, and nothing has shifted.
func TestHealthyProportions(t *testing.T) {
	looked := 0
	for service := range 60 {
		random := rand.New(rand.NewPCG(uint64(service), 2))
		var p shift.Proportion
		ratio := []float64{0, 0.001, 0.005, 0.01, 0.03, 0.1}[service%6]
		perMinute := []float64{0.3, 3, 30, 100}[service%4]
		version := uint8(1)
		for now, next := start, start; now.Before(start.Add(24 * time.Hour)); {
			day := math.Sin(2 * math.Pi * now.Sub(start).Hours() / 24)
			now = now.Add(time.Duration(random.ExpFloat64() / (perMinute * math.Exp(day)) * float64(time.Minute)))
			if random.IntN(2000) == 0 {
				version = version%7 + 1
			}
			p.Add(now, random.Float64() < ratio, version)
			if now.After(next) {
				next = now.Add(15 * time.Second)
				looked++
				if found := p.Find(now, &rule); found.Shifted {
					t.Fatalf("service %d at %s: %+v", service, now, found)
				}
			}
		}
	}
	assert.Greater(t, looked, 80_000)
}
