package model_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// The costs of requests add up from all sources, and those of GPUs are added over
// time.
func TestCostsOfRuns(t *testing.T) {
	w := newWorld(input.Settings{})
	send := func(gpus bool) {
		w.point(series.Steps, "r", 1)
		w.point(series.Cost, "r", 2, "input", "m", "computed")
		w.point(series.Cost, "r", 0.5, "other", "m", "stated")
		w.point(series.Requests, "r", 3, "chat", "m")
		if gpus {
			w.point(series.RunGPUs, "r", 8)
			w.point(series.RunGPUPrice, "r", 20)
		}
	}
	send(false)
	s := w.state()
	require.Len(t, s.Runs, 1)
	assert.Nil(t, s.Runs[0].GPUPrice)
	require.NotNil(t, s.Runs[0].Cost)
	assert.InDelta(t, 2.5, *s.Runs[0].Cost, 0)
	require.Len(t, s.Models, 1)
	assert.InDelta(t, 2.5, *s.Models[0].Cost, 0)

	for range 60 {
		w.now = w.now.Add(time.Minute)
		send(true)
		s = w.state()
	}
	assert.InDelta(t, 20, *s.Runs[0].GPUPrice, 0)
	detail, known := w.Run(s.Runs[0].Key)
	require.True(t, known)
	require.NotNil(t, detail.Spent.GPUCost)
	assert.InDelta(t, 2.5, *detail.Spent.GPUCost / *detail.Spent.GPUHours, 1e-9, "20 dollars an hour for 8 GPUs")
	assert.InDelta(t, 20, *detail.Spent.GPUCost, 2)
}
