package model_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// in has the run be in a state for a time.
func (f *trainer) in(run, state string, lasts time.Duration) {
	for end := f.now.Add(lasts); f.now.Before(end); f.now = f.now.Add(10 * time.Second) {
		points := []series.Point{point(series.RunState, run, 1, state)}
		for _, other := range []string{"running", "stalled", "silent", "ended"} {
			if other != state {
				points = append(points, point(series.RunState, run, 0, other))
			}
		}
		f.store.ApplyPoints(points)
	}
}

func (f *trainer) settled() map[string]string {
	all := map[string]string{}
	for _, one := range f.store.Settled() {
		all[one.Key] = one.State
	}
	return all
}

func TestRunsSettle(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("r", 20, falling)
	key := f.key(t, "r")
	f.in("r", "running", time.Hour)
	assert.Empty(t, f.settled())

	f.in("r", "stalled", 9*time.Minute)
	assert.Empty(t, f.settled(), "it may go on")
	f.in("r", "stalled", 2*time.Minute)
	assert.Equal(t, map[string]string{key: "stalled"}, f.settled())
	since := f.store.Settled()[0].Since

	f.in("r", "running", time.Minute)
	assert.Empty(t, f.settled(), "it went on")
	f.in("r", "silent", 11*time.Minute)
	assert.Equal(t, map[string]string{key: "silent"}, f.settled())
	assert.True(t, f.store.Settled()[0].Since.After(since), "it has settled again")

	f.in("r", "ended", 10*time.Second)
	assert.Equal(t, map[string]string{key: "ended"}, f.settled(), "an end needs no wait")
}
