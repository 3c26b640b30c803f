package pace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
)

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// traffic adds n requests, one a second, of which each one in failing fails, and
// returns the time of the last one; with 0 none fails.
func traffic(r *pace.Requests, from time.Time, n, failing int) time.Time {
	for i := range n {
		from = from.Add(time.Second)
		r.Add(from, failing > 0 && i%failing == failing-1)
	}
	return from
}

func TestErrorRatios(t *testing.T) {
	var r pace.Requests
	assert.Equal(t, pace.ErrorRatios{Recent: -1, Usual: -1}, r.Ratios(start))
	assert.True(t, r.Newest().IsZero())

	now := traffic(&r, start, 199, 0)
	assert.Equal(t, pace.ErrorRatios{Recent: 0, Usual: -1}, r.Ratios(now), "99 requests are not usual yet")
	now = traffic(&r, now, 1, 0)
	assert.Equal(t, pace.ErrorRatios{Recent: 0, Usual: 0}, r.Ratios(now))
	assert.WithinDuration(t, now, r.Newest(), time.Nanosecond)

	began := now.Add(10 * time.Second)
	now = traffic(&r, now, 40, 10)
	ratios := r.Ratios(now)
	assert.InDelta(t, 0.04, ratios.Recent, 1e-9)
	assert.False(t, ratios.Failing)
	now = traffic(&r, now, 10, 10)
	ratios = r.Ratios(now)
	assert.InDelta(t, 0.05, ratios.Recent, 1e-9)
	assert.InDelta(t, 0, ratios.Usual, 0)
	assert.True(t, ratios.Failing, "0 counts as 1/1000")
	assert.WithinDuration(t, began, ratios.Since, time.Nanosecond)

	ratios = r.Ratios(now.Add(16 * time.Minute))
	assert.Equal(t, pace.ErrorRatios{Recent: -1, Usual: 5. / 250}, ratios, "none of late")
	now = traffic(&r, now, 5000, 0)
	assert.Equal(t, pace.ErrorRatios{}, r.Ratios(now), "only the newest count")
}

func TestFailing(t *testing.T) {
	for name, tt := range map[string]struct {
		usual, usualFailing, recent, recentFailing int
		want                                       bool
	}{
		"as usual":                       {1000, 10, 100, 10, false},
		"twice as often":                 {1000, 20, 100, 10, false},
		"three times as often":           {1000, 30, 100, 10, true},
		"more often, but not enough":     {1000, 100, 100, 25, false},
		"the first requests":             {0, 0, 6, 2, true},
		"the first requests, less often": {0, 0, 9, 3, false},
		"two failures of two":            {0, 0, 2, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r pace.Requests
			now := traffic(&r, start, tt.usual, tt.usualFailing)
			now = traffic(&r, now, tt.recent, tt.recentFailing)
			assert.Equal(t, tt.want, r.Ratios(now).Failing)
		})
	}
	var r pace.Requests
	now := traffic(&r, start, 200, 0).Add(time.Hour)
	now = traffic(&r, now, 20, 10)
	assert.InDelta(t, 0.1, r.Ratios(now).Recent, 1e-9)
	assert.False(t, r.Ratios(now).Failing, "two failures are few")
}
