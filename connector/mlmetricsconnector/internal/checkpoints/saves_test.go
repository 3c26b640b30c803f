package checkpoints_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/checkpoints"
)

// rank takes steps of about a second.
type rank struct {
	checkpoints.Saves
	now   time.Time
	steps int64
}

func newRank() *rank { return &rank{now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)} }

func (r *rank) step(n int) {
	r.steps += int64(n)
	r.now = r.now.Add(time.Duration(n) * time.Second)
}

func (r *rank) overdue() bool { _, late, _ := r.Overdue(r.now, r.steps); return late }

func TestACheckpointThatIsMissing(t *testing.T) {
	r := newRank()
	for range 5 {
		r.step(100)
		assert.False(t, r.overdue())
		r.Save(r.now, r.steps)
		r.now = r.now.Add(5 * time.Second)
		r.Save(r.now, r.steps) // of a shard
	}
	last := r.now
	r.step(200)
	assert.False(t, r.overdue())
	r.step(20)
	o, late, usual := r.Overdue(r.now, r.steps)
	require.True(t, late)
	assert.True(t, usual)
	assert.Equal(t, checkpoints.Overdue{
		Since: last.Add(100 * time.Second), Last: 220 * time.Second, Steps: 220,
		Usual: 100 * time.Second, UsualSteps: 100, Count: 4,
	}, o)
	assert.Equal(t, last, r.Last())
	r.Save(r.now, r.steps)
	assert.False(t, r.overdue())
}

func TestWhatIsNotOverdue(t *testing.T) {
	for name, run := range map[string]func(r *rank, noise *rand.Rand){
		"too few checkpoints": func(r *rank, _ *rand.Rand) {
			for range 2 {
				r.step(100)
				r.Save(r.now, r.steps)
			}
			r.step(10_000)
		},
		"too few for their noise": func(r *rank, _ *rand.Rand) {
			for n := range 4 {
				r.step(100 + 5*n)
				r.Save(r.now, r.steps)
			}
			r.step(10_000)
		},
		"slower steps": func(r *rank, _ *rand.Rand) {
			for range 9 {
				r.step(100)
				r.Save(r.now, r.steps)
			}
			r.step(90)
			r.now = r.now.Add(time.Hour)
		},
		"faster steps": func(r *rank, _ *rand.Rand) {
			for range 9 {
				r.step(100)
				r.Save(r.now, r.steps)
			}
			r.steps += 500
			r.step(90)
		},
		"irregular": func(r *rank, noise *rand.Rand) {
			for range 1000 {
				r.step(10 + int(300*noise.ExpFloat64()))
				if r.overdue() {
					return
				}
				r.Save(r.now, r.steps)
			}
		},
		"a quarter of noise": func(r *rank, noise *rand.Rand) {
			for range 2000 {
				r.step(75 + noise.IntN(50))
				if r.overdue() {
					return
				}
				r.Save(r.now, r.steps)
			}
		},
		"only the best are kept": func(r *rank, _ *rand.Rand) {
			for epoch := range 40 {
				r.step(100)
				r.Validate(r.steps)
				if epoch < 20 {
					r.Save(r.now, r.steps)
				}
			}
		},
		"a restart": func(r *rank, _ *rand.Rand) {
			for range 9 {
				r.step(100)
				r.Save(r.now, r.steps)
			}
			r.step(150)
			r.Restart(r.now, r.steps)
			r.step(150)
		},
		"none at all": func(r *rank, _ *rand.Rand) { r.Restart(r.now, 0); r.step(10_000) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRank()
			run(r, rand.New(rand.NewPCG(1, 2))) // #nosec G404 -- noise
			assert.False(t, r.overdue())
		})
	}
}

// A rank that validates as often as it saves, at another step, is watched.
func TestValidationBetweenCheckpoints(t *testing.T) {
	r := newRank()
	for range 9 {
		r.step(50)
		r.Validate(r.steps)
		r.step(50)
		r.Save(r.now, r.steps)
	}
	r.step(50)
	r.Validate(r.steps)
	r.step(500)
	assert.True(t, r.overdue())
}
