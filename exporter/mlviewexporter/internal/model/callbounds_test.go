package model_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// callTime adds a point of what the time of calls of a function, or of requests to a
// model, was spent on.
func (w *world) callTime(cause, request, function string, seconds float64) {
	p := series.Point{Series: series.CallTime, Update: series.Update{Value: seconds, Time: w.now.UnixNano()}}
	p.Labels.Service = "agent"
	p.Labels.Own = [series.MaxOwn]string{0: cause, 1: request, 6: function}
	w.ApplyPoints([]series.Point{p})
}

func TestWhatTheTimeOfCallsIsSpentOn(t *testing.T) {
	w := newWorld(input.Settings{})
	w.span(func(in *input.Span) {
		in.Source = &input.Source{Service: "agent"}
		in.Trace, in.ID, in.Part, in.Fact.Function, in.Duration = [16]byte{1}, [8]byte{1}, input.WholeCall, "search", 1
	})
	w.span(func(in *input.Span) {
		in.Source = &input.Source{Service: "agent"}
		in.Trace, in.ID, in.Asks, in.Fact.Requested = [16]byte{1}, [8]byte{2}, true, "m"
	})
	spent := func() (call, request map[string]float64) {
		state := w.state()
		require.Len(t, state.Calls, 2)
		require.Equal(t, "m", state.Calls[1].Model, "a request is a call, too")
		require.Len(t, state.Models, 1)
		return state.Calls[0].Bound, state.Models[0].Bound
	}
	call, request := spent()
	assert.Nil(t, call)
	assert.Nil(t, request)

	w.callTime("queue", "", "search", 3)
	w.callTime("unknown", "", "search", 1)
	w.callTime("cpu", "", "another", 100)
	w.callTime("model_server", "m", "", 8)
	w.callTime("cpu", "another", "", 100)
	call, request = spent()
	assert.Equal(t, map[string]float64{"queue": 0.75, "unknown": 0.25}, call, "since the start")
	assert.Equal(t, map[string]float64{"model_server": 1}, request)

	w.now = w.now.Add(30 * time.Second)
	w.callTime("queue", "", "search", 3)
	w.callTime("unknown", "", "search", 3)
	w.callTime("model_server", "m", "", 8)
	call, request = spent()
	assert.Equal(t, map[string]float64{"unknown": 1}, call, "in the last minute")
	assert.Equal(t, map[string]float64{"model_server": 1}, request, "nothing was asked in the last minute")
}
