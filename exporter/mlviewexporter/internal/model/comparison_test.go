package model_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
)

// trainer plays runs of a service into a store.
type trainer struct {
	store *model.Store
	now   time.Time
}

func newTrainer(set input.Settings) *trainer {
	f := &trainer{now: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	set.Now = func() time.Time { return f.now }
	f.store = pagetest.NewStore(set)
	return f
}

func point(metric series.Series, run string, value float64, own ...string) series.Point {
	p := series.Point{Series: metric, Update: series.Update{Value: value}, Labels: series.Labels{Service: "trainer", Run: run}}
	copy(p.Labels.Own[:], own)
	return p
}

// trains is the fact of the span of a whole training.
var trains = spanfact.Fact{End: spanfact.End{Phase: "train"}}

// train has a run take a step each two seconds. loss gives its loss at a step.
func (f *trainer) train(run string, steps int, loss func(step float64) float64) {
	source := &input.Source{Service: "trainer", Run: run, JobName: "nightly", Version: "v-" + run, Settings: []api.Setting{{Name: "vcs.ref.head.revision", Value: "abc"}}}
	f.store.ApplySpans([]input.Span{{Source: source, Fact: trains, ML: true, Sizes: input.Sizes{32}}}, nil)
	for step := 1; step <= steps; step++ {
		at := float64(step)
		f.store.ApplyPoints([]series.Point{
			point(series.Steps, run, at), point(series.Loss, run, loss(at), "batch"), point(series.RunStepTime, run, 2, "recent"),
			point(series.RunState, run, 1, "running"), point(series.RunTimeRatio, run, 0.75, "productive"),
			point(series.RunTimeRatio, run, 0.25, "data_load"), point(series.RunGPUs, run, 4),
			{Series: series.StepDuration, Update: series.Update{Value: 2 * at, Count: at}, Labels: series.Labels{Service: "trainer", Run: run, Own: [series.MaxOwn]string{"step"}}},
			{Series: series.StepDuration, Update: series.Update{Value: at / 2, Count: at}, Labels: series.Labels{Service: "trainer", Run: run, Own: [series.MaxOwn]string{"data_load"}}},
		})
		f.now = f.now.Add(2 * time.Second)
	}
}

// end has the run end, and passes the time until its last numbers are recorded.
func (f *trainer) end(run string) {
	for range 3 {
		f.store.ApplyPoints([]series.Point{point(series.RunState, run, 0, "running"), point(series.RunState, run, 1, "ended")})
		f.now = f.now.Add(3 * time.Second)
	}
}

func (f *trainer) key(t *testing.T, run string) string {
	t.Helper()
	for _, row := range f.store.State().Runs {
		if row.ID == run {
			return row.Key
		}
	}
	t.Fatalf("no run %q", run)
	return ""
}

func falling(step float64) float64 { return 1 + math.Exp(-step/100) + 0.01*math.Sin(step*step) }

func risingFrom(from float64) func(float64) float64 {
	return func(step float64) float64 {
		if step < from {
			return falling(step)
		}
		return falling(step) + 0.5
	}
}

func numbersOf(rows []api.RunNumber) map[string]float64 {
	all := map[string]float64{}
	for _, row := range rows {
		all[row.Name] = row.Value
	}
	return all
}

func TestARunBesideItsLastGoodOne(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("good", 400, falling)
	f.end("good")
	f.train("bad", 300, risingFrom(150))

	c, ok := f.store.Compare(f.key(t, "bad"), "")
	require.True(t, ok)
	require.NotNil(t, c.With)
	assert.Equal(t, "good", c.With.Run.ID)
	assert.Equal(t, "last_good", c.Basis)
	require.NotNil(t, c.Parting)
	assert.Equal(t, "steps", c.Parting.By)
	require.True(t, c.Parting.Parted)
	assert.InDelta(t, 150, *c.Parting.At, 10)
	assert.Equal(t, []api.SettingPair{{Name: "service.version", Run: "v-bad", With: "v-good"}}, c.Settings)
	assert.Equal(t, 3, c.Equal, "batch size, revision, job")

	numbers := numbersOf(c.Run.Numbers)
	assert.InDelta(t, 300.0, numbers["steps"], 0)
	assert.InDelta(t, 2.0, numbers["step_time_median"], 0)
	assert.InDelta(t, 4*600.0/3600, numbers["gpu_hours"], 0.02)
	assert.Equal(t, map[string]float64{"step": 2, "data_load": 0.5}, numbersOf(c.Run.Phases))
	assert.Equal(t, map[string]float64{"step": 2, "data_load": 0.5}, numbersOf(c.With.Phases))
	require.Len(t, c.Others, 1)
	assert.True(t, c.Others[0].Good)
}

func TestEqualRunsDoNotPart(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("first", 200, falling)
	f.end("first")
	f.train("second", 200, falling)
	c, ok := f.store.Compare(f.key(t, "second"), "")
	require.True(t, ok)
	require.NotNil(t, c.Parting)
	assert.Positive(t, c.Parting.Positions)
	assert.False(t, c.Parting.Parted)
}

func TestOnlyRunsThatEndedWellAreGood(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("slow", 50, falling)
	f.store.ApplyPoints([]series.Point{point(series.Problem, "slow", float64(f.now.Unix()), "slow")})
	f.end("slow")
	f.train("failed", 50, falling)
	f.store.ApplySpans([]input.Span{{Source: &input.Source{Service: "trainer", Run: "failed"}, Fact: trains, ML: true, Failure: input.Failure{Failed: true, Class: "E"}}}, nil)
	f.end("failed")
	f.train("killed", 50, falling)
	f.train("last", 50, falling)

	c, ok := f.store.Compare(f.key(t, "last"), "")
	require.True(t, ok)
	assert.Nil(t, c.With)
	assert.NotEmpty(t, c.Why)
	assert.Len(t, c.Others, 3)
	for _, other := range c.Others {
		assert.False(t, other.Good, other.ID)
	}
}

func TestARunBesideAnyOther(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("a", 50, falling)
	f.train("b", 50, falling)
	c, ok := f.store.Compare(f.key(t, "a"), f.key(t, "b"))
	require.True(t, ok)
	assert.Equal(t, "chosen", c.Basis)
	assert.Equal(t, "b", c.With.Run.ID)

	_, ok = f.store.Compare(f.key(t, "a"), "nothing")
	assert.False(t, ok)
	_, ok = f.store.Compare("nothing", "")
	assert.False(t, ok)
}

func TestAGoodRunIsKeptOverRestartsAndAfterItsRow(t *testing.T) {
	f := newTrainer(input.Settings{History: time.Hour})
	f.train("good", 100, falling)
	f.end("good")
	before, ok := f.store.Compare(f.key(t, "good"), "")
	require.True(t, ok)
	data, err := f.store.Export()
	require.NoError(t, err)

	later := newTrainer(input.Settings{History: time.Hour})
	later.now = f.now.Add(48 * time.Hour)
	require.NoError(t, later.store.Import(data))
	later.train("next", 100, risingFrom(50))
	c, ok := later.store.Compare(later.key(t, "next"), "")
	require.True(t, ok)
	require.NotNil(t, c.With)
	assert.Equal(t, before.Run.Curves, c.With.Curves)
	assert.Equal(t, before.Run.Numbers, c.With.Numbers)
	assert.True(t, c.Parting.Parted)

	expired := newTrainer(input.Settings{})
	expired.now = f.now.Add(8 * 24 * time.Hour)
	require.NoError(t, expired.store.Import(data))
	expired.train("next", 10, falling)
	c, ok = expired.store.Compare(expired.key(t, "next"), "")
	require.True(t, ok)
	assert.Nil(t, c.With, "a week is over")
}

func TestGoodRunsAreBounded(t *testing.T) {
	f := newTrainer(input.Settings{})
	for i := range 100 {
		service := fmt.Sprintf("service-%d", i)
		for _, state := range []string{"running", "running", "running", "ended", "ended", "ended"} {
			var points []series.Point
			for _, p := range []series.Point{point(series.Steps, "r", 1), point(series.RunState, "r", 1, state), point(series.RunState, "r", 0, map[string]string{"running": "ended", "ended": "running"}[state])} {
				p.Labels.Service = service
				points = append(points, p)
			}
			f.store.ApplyPoints(points)
			f.now = f.now.Add(3 * time.Second)
		}
	}
	f.train("one", 5, falling)
	c, ok := f.store.Compare(f.key(t, "one"), "")
	require.True(t, ok)
	assert.Len(t, c.Others, 32)
	data, err := f.store.Export()
	require.NoError(t, err)
	assert.Less(t, len(data), 1<<20)
}

func TestProfilesAreBounded(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("long", 9000, falling)
	c, ok := f.store.Compare(f.key(t, "long"), "")
	require.True(t, ok)
	require.NotEmpty(t, c.Run.Curves)
	for _, curve := range c.Run.Curves {
		assert.LessOrEqual(t, len(curve.Values), 240, curve.Name)
		assert.Len(t, curve.Steps, len(curve.Values), curve.Name)
		assert.Len(t, curve.Elapsed, len(curve.Values), curve.Name)
		assert.Empty(t, curve.Epochs, curve.Name)
	}
}

// The curves of a run of more than 40 minutes are means of minutes up to its end: single
// points at the end would weigh as much each as a minute, and be noisier.
func TestComparedCurvesHaveOneResolution(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("r", 3000, falling)
	c, ok := f.store.Compare(f.key(t, "r"), "")
	require.True(t, ok)
	for _, curve := range c.Run.Curves {
		require.InDelta(t, 100, len(curve.Values), 2, curve.Name)
		for i := range curve.Elapsed[1:] {
			assert.InDelta(t, 60, curve.Elapsed[i+1]-curve.Elapsed[i], 5, "%s at %d", curve.Name, i)
		}
	}
}

func TestTimeIsSpentByStateAndUse(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("r", 1000, falling)
	detail, ok := f.store.Run(f.key(t, "r"))
	require.True(t, ok)
	assert.InDelta(t, 2000, detail.Spent.States["running"], 10)
	assert.InDelta(t, 1500, detail.Spent.Uses["productive"], 10)
	assert.InDelta(t, 500, detail.Spent.Uses["data_load"], 10)
	f.end("r")
	detail, _ = f.store.Run(f.key(t, "r"))
	assert.InDelta(t, 2000, detail.Spent.States["running"], 10)
	assert.NotContains(t, detail.Spent.States, "ended")
}

func TestTheLastTwoGoodRunsOfAJobAreKept(t *testing.T) {
	f := newTrainer(input.Settings{})
	for _, run := range []string{"first", "second", "third"} {
		f.train(run, 20, falling)
		f.end(run)
	}
	c, ok := f.store.Compare(f.key(t, "third"), "")
	require.True(t, ok)
	assert.Equal(t, "second", c.With.Run.ID)
	good := map[string]bool{}
	for _, other := range c.Others {
		good[other.ID] = other.Good
	}
	assert.Equal(t, map[string]bool{"first": false, "second": true}, good)
}

// TestTheLastLossIsThatOfTheLastStep has a last step of which the page learns seconds
// after it, as it always does, and a gauge that keeps its value, or changes, after it. The
// curve of the run is long enough to be thinned.
func TestTheLastLossIsThatOfTheLastStep(t *testing.T) {
	for name, clock := range map[string]time.Duration{"clocks agree": 0, "the sender's is an hour behind": -time.Hour, "and ahead": time.Minute} {
		t.Run(name, func(t *testing.T) {
			f := newTrainer(input.Settings{})
			f.train("r", 500, falling)
			last := float64(f.now.Add(clock).Unix())
			f.now = f.now.Add(4 * time.Second)
			say := func(loss float64, states ...series.Point) {
				f.store.ApplyPoints(append(states, point(series.LastStep, "r", last), point(series.Loss, "r", loss, "batch")))
				f.now = f.now.Add(3 * time.Second)
			}
			say(0.5)
			for range 20 {
				say(7, point(series.RunState, "r", 0, "running"), point(series.RunState, "r", 1, "ended"))
			}
			c, ok := f.store.Compare(f.key(t, "r"), "")
			require.True(t, ok)
			numbers := numbersOf(c.Run.Numbers)
			assert.InDelta(t, 0.5, numbers["loss_last"], 0)
			assert.InDelta(t, 0.5, numbers["loss_least"], 0)
			detail, ok := f.store.Run(f.key(t, "r"))
			require.True(t, ok)
			for _, curve := range detail.Curves {
				if curve.Name == "loss" {
					assert.InDelta(t, 0.5, curve.Fine.Values[len(curve.Fine.Values)-1], 0, "the curve ends there")
				}
			}
		})
	}
}

// TestTheLastLossThatIsNoNumber is not a number of an earlier step.
func TestTheLastLossThatIsNoNumber(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("r", 50, falling)
	f.store.ApplyPoints([]series.Point{point(series.Loss, "r", math.NaN(), "batch"), point(series.LastStep, "r", float64(f.now.Unix()))})
	f.now = f.now.Add(3 * time.Second)
	f.store.ApplyPoints([]series.Point{point(series.RunState, "r", 0, "running"), point(series.RunState, "r", 1, "ended")})
	c, ok := f.store.Compare(f.key(t, "r"), "")
	require.True(t, ok)
	assert.NotContains(t, numbersOf(c.Run.Numbers), "loss_last")
}

// TestTheLastValidationLoss comes after the last step.
func TestTheLastValidationLoss(t *testing.T) {
	f := newTrainer(input.Settings{})
	f.train("r", 50, falling)
	last := point(series.LastStep, "r", float64(f.now.Unix()))
	for _, loss := range []float64{2, 1.5} {
		f.store.ApplyPoints([]series.Point{last, point(series.Loss, "r", loss, "validation")})
		f.now = f.now.Add(10 * time.Second)
	}
	f.end("r")
	c, ok := f.store.Compare(f.key(t, "r"), "")
	require.True(t, ok)
	assert.InDelta(t, 1.5, numbersOf(c.Run.Numbers)["validation_loss_last"], 0)
}
