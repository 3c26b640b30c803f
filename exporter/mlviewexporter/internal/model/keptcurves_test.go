package model_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// trains has runs report their numbers for a time, every interval.
func (w *world) trains(d, interval time.Duration, runs ...string) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(interval) {
		for _, run := range runs {
			w.point(series.RunGoodput, run, float64(w.now.Unix()%97)/100)
			w.point(series.Loss, run, 2, "batch")
		}
		w.State()
	}
}

func (w *world) curvesOf(t *testing.T, run string) []api.Curve {
	t.Helper()
	for _, row := range w.state().Runs {
		if row.ID == run {
			detail, ok := w.Run(row.Key)
			require.True(t, ok)
			return detail.Curves
		}
	}
	return nil
}

// A restart keeps the curves of all runs: those before it, and of the minute in which it
// was, which go on.
func TestCurvesOutliveARestart(t *testing.T) {
	w := newWorld(input.Settings{})
	w.trains(25*time.Minute+30*time.Second, 2*time.Second, "a", "b")
	w.state()
	data, err := w.Export()
	require.NoError(t, err)

	again := newWorld(input.Settings{})
	again.now = w.now
	require.NoError(t, again.Import(data))
	kept, err := again.Export()
	require.NoError(t, err)
	assert.Equal(t, string(data), string(kept), "another restart keeps the same")
	for _, run := range []string{"a", "b"} {
		before := w.curvesOf(t, run)
		require.NotEmpty(t, before)
		require.Len(t, before[0].Low, len(before[0].Values))
		again.now = w.now.Add(-2 * time.Second)
		after := again.curvesOf(t, run)
		assert.InDelta(t, after[0].Values[0], after[0].Low[0], 0, "of the minutes before it, only means are kept")
		assert.Equal(t, means(before), means(after))
	}
	again.now = w.now
	w.trains(15*time.Minute, 2*time.Second, "a")
	again.trains(15*time.Minute, 2*time.Second, "a")
	before := w.curvesOf(t, "a")
	again.now = w.now.Add(-2 * time.Second)
	assert.Equal(t, means(before), means(again.curvesOf(t, "a")), "as if there had been no restart")
}

// means returns the curves without the extremes of their minutes.
func means(curves []api.Curve) []api.Curve {
	curves = slices.Clone(curves)
	for i := range curves {
		curves[i].Low, curves[i].High = nil, nil
	}
	return curves
}

// Curves have a part of the room, and those of the newest runs have it first. The rows of
// the others stay.
func TestCurvesOfManyRunsHaveALimit(t *testing.T) {
	const runs, points = 280, 720
	w := newWorld(input.Settings{})
	var times, values []byte
	for i := range points {
		times = binary.LittleEndian.AppendUint32(times, uint32(w.now.Unix())-60*(points-uint32(i)))
		values = binary.LittleEndian.AppendUint32(values, math.Float32bits(float32(i)))
	}
	curves := map[string]any{}
	for _, name := range []string{"loss", "step_time", "token_rate", "goodput", "gpu_utilization", "gpu_memory", "power", "validation_loss", "learning_rate", "sample_rate", "steps", "epoch"} {
		curves[name] = values
	}
	var rows []map[string]any
	for i := range runs {
		at := w.now.Add(time.Duration(i-runs) * time.Minute)
		rows = append(rows, map[string]any{
			"service": "trainer", "id": "run-" + strconv.Itoa(i), "first_seen": at, "last_seen": at,
			"coarse": map[string]any{"times": times, "values": curves},
		})
	}
	data, err := json.Marshal(map[string]any{"version": 1, "runs": rows})
	require.NoError(t, err)
	require.NoError(t, w.Import(data))
	data, err = w.Export()
	require.NoError(t, err)
	again := newWorld(input.Settings{})
	again.now = w.now
	require.NoError(t, again.Import(data))
	assert.Len(t, again.state().Runs, runs)
	assert.Len(t, again.curvesOf(t, "run-"+strconv.Itoa(runs-1)), 10)
	assert.Empty(t, again.curvesOf(t, "run-0"), "it was seen longest ago")
}

// What is no curve is none: the page begins without it.
func TestCurvesThatAreDamaged(t *testing.T) {
	w := newWorld(input.Settings{})
	now := w.now.Format(time.RFC3339)
	for name, fine := range map[string]string{
		"half a time":       `{"times":"AQID","values":{"loss":"AQID"}}`,
		"not in order":      `{"times":"AgAAAAEAAAA=","values":{"loss":"AACAPwAAgD8="}}`,
		"fewer values":      `{"times":"AQAAAAIAAAA=","values":{"loss":"AACAPw=="}}`,
		"of the future":     `{"times":"/////w==","values":{"loss":"AACAPw=="}}`,
		"infinite":          `{"times":"AQAAAA==","values":{"loss":"AACAfw=="}}`,
		"of unknown curves": `{"times":"AQAAAA==","values":{"other":"AACAPw=="}}`,
		"empty":             `{}`,
		"none":              `null`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(input.Settings{})
			require.NoError(t, w.Import([]byte(`{"version":1,"runs":[{"service":"trainer","id":"a","first_seen":"`+now+`","last_seen":"`+now+`","fine":`+fine+`,"coarse":`+fine+`}]}`)))
			assert.Empty(t, w.curvesOf(t, "a"))
			w.trains(time.Minute, 2*time.Second, "a")
			assert.NotEmpty(t, w.curvesOf(t, "a"), "it goes on")
		})
	}
}

func FuzzImport(f *testing.F) {
	w := newWorld(input.Settings{})
	w.trains(3*time.Minute, 2*time.Second, "a")
	w.span(func(in *input.Span) { in.Failed, in.Class = true, "E" })
	data, err := w.Export()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(input.Settings{})
		if w.Import(data) != nil {
			return
		}
		w.trains(10*time.Second, 2*time.Second, "a")
		state := w.state()
		_, err := json.Marshal(state)
		require.NoError(t, err)
		for _, row := range state.Runs {
			detail, ok := w.Run(row.Key)
			require.True(t, ok)
			_, err := json.Marshal(detail)
			require.NoError(t, err)
		}
		again, err := w.Export()
		require.NoError(t, err)
		require.NoError(t, newWorld(input.Settings{}).Import(again))
	})
}
