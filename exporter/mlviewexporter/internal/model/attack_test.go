package model_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Problems of what nobody knows do not keep out real ones.
func TestUnknownProblemsMakeRoom(t *testing.T) {
	w := newWorld(input.Settings{})
	w.ApplyPoints(points(series.Problem, 3000, func(i int, l *series.Labels) {
		l.Service, l.Run, l.Own[0] = "s"+strconv.Itoa(i), "", mlattr.ProblemLooksHung
	}))
	w.point(series.Steps, "r", 1)
	w.point(series.Problem, "r", float64(w.now.Unix()), mlattr.ProblemLooksHung)
	found := false
	for _, r := range w.state().Runs {
		found = found || len(r.Needs) > 0
	}
	assert.True(t, found)
}

// Runs that only spans name make room for others at once.
func TestRunsOfSpansMakeRoom(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 10})
	for i := range 100 {
		w.span(func(in *input.Span) { in.Source.Run = strconv.Itoa(i) })
	}
	w.now = w.now.Add(2 * time.Second)
	w.point(series.RunState, "real", 1, "running")
	var ids []string
	for _, r := range w.state().Runs {
		ids = append(ids, r.ID)
	}
	assert.Contains(t, ids, "real")
}

// TestOfManyRunsSomeStay: a program whose spans name a run for each request does not displace
// each of them before somebody reads it, and leaves room for the run of another program.
func TestOfManyRunsSomeStay(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 10})
	listed := make(map[string]bool)
	for second := range 10 {
		for i := range 1000 {
			w.span(func(in *input.Span) { in.Source.Run = strconv.Itoa(1000*second + i) })
		}
		if second == 5 {
			w.span(func(in *input.Span) { in.Source.Service, in.Source.Run = "other", "other" })
		}
		for _, r := range w.state().Runs {
			listed[r.ID] = true
		}
		w.now = w.now.Add(time.Second)
	}
	assert.Less(t, len(listed), 30)
	assert.Contains(t, listed, "other")
	assert.Greater(t, w.state().Collector.Hidden["runs"], 100)
}

// Ranks of runs that have ended make room for those of a new one.
func TestRanksOfEndedRunsMakeRoom(t *testing.T) {
	w := newWorld(input.Settings{})
	for run := range 5 {
		id := strconv.Itoa(run)
		w.now = w.now.Add(2 * time.Second)
		w.ApplyPoints(points(series.LastStep, 16_000, func(i int, l *series.Labels) { l.Run, l.Rank = id, strconv.Itoa(i) }))
		w.point(series.RunState, id, 1, "ended")
	}
	for _, r := range w.state().Runs {
		if r.ID == "4" {
			assert.Equal(t, 16_000, r.Ranks)
		}
	}
}
