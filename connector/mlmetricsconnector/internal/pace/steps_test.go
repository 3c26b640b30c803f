package pace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
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
	assert.Equal(t, pace.StepTimes{Recent: 2}, s.Times(), "of as many as there are")
	add(&s, 66, 2*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 2}, s.Times(), "49 steps are not usual yet")
	add(&s, 1, 2*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 2, Usual: 2}, s.Times())

	add(&s, 9, 3*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 2, Usual: 2}, s.Times(), "fewer than half of the recent ones")
	add(&s, 1, 3*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 2.5, Usual: 2}, s.Times(), "half of them")
	assert.False(t, s.Times().Slow(), "1.25 times")
	add(&s, 1, 3*time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 3, Usual: 2}, s.Times())
	assert.True(t, s.Times().Slow())
	assert.Equal(t, 33*time.Second, s.SlowFor(2))

	add(&s, 300, 3*time.Second)
	assert.False(t, s.Times().Slow(), "it is usual now")
	add(&s, 10_000, time.Second)
	assert.Equal(t, pace.StepTimes{Recent: 1, Usual: 1}, s.Times(), "only the newest count")
}

// One slow step long before does not make the slowness older.
func TestSlowForLeavesOutliersOut(t *testing.T) {
	var s pace.Steps
	add(&s, 100, time.Second)
	add(&s, 1, time.Minute)
	add(&s, 8, time.Second)
	assert.Zero(t, s.SlowFor(1))
	add(&s, 11, 2*time.Second)
	assert.Equal(t, 22*time.Second, s.SlowFor(1))
}

func TestStepsWithoutLength(t *testing.T) {
	var s pace.Steps
	add(&s, 5, 0)
	add(&s, 5, -time.Second)
	assert.Zero(t, s.Times())
	assert.Zero(t, s.SlowFor(1))
}

func TestMedian(t *testing.T) {
	assert.Zero(t, pace.Median(nil))
	assert.InDelta(t, 5, pace.Median([]float64{9, 5, 1}), 0)
	assert.InDelta(t, 4, pace.Median([]float64{9, 5, 1, 3}), 0)
}
