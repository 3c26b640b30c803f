package model_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// steps sends the durations of the steps of a rank on a host: their number and
// the time of all of them, and of loading data.
func (w *world) steps(rank int, host string, count, whole, load float64) {
	var points []series.Point
	for phase, seconds := range map[string]float64{"step": whole, "data_load": load, "forward": count} {
		p := series.Point{Series: series.StepDuration, Value: seconds, Count: count, Time: w.now.UnixNano()}
		p.Labels.Service, p.Labels.Run, p.Labels.Rank, p.Labels.Host = "trainer", "r", strconv.Itoa(rank), host
		p.Labels.Own[0], p.Labels.Own[1] = phase, "host"
		points = append(points, p)
	}
	w.ApplyPoints(points)
}

// slow sends the problem, and returns its evidence and what to do next.
func (w *world) slow(t *testing.T, onset time.Time) (evidence, next string) {
	t.Helper()
	w.point(series.RunState, "r", 1, "running")
	w.point(series.Problem, "r", float64(onset.Unix()), api.Slow)
	needs := w.state().Needs
	require.Len(t, needs, 1)
	return strings.Join(needs[0].Evidence, "; "), needs[0].Next
}

// A slow run says from the first minute on which phase grew, and on which ranks,
// also if these have moved to another host.
func TestEvidenceOfASlowRun(t *testing.T) {
	for name, tt := range map[string]struct {
		moved    bool
		load     [2]float64
		evidence string
		next     string
	}{
		"all ranks":              {load: [2]float64{5, 5}, evidence: "data_load 0.5 → 2.5 s, all ranks", next: "input"},
		"after a move":           {moved: true, load: [2]float64{5, 5}, evidence: "data_load 0.5 → 2.5 s, all ranks", next: "input"},
		"one rank":               {load: [2]float64{1, 5}, evidence: "data_load 0.5 → 1.5 s, 1 of 2 ranks", next: "input"},
		"another phase, unknown": {load: [2]float64{1, 1}, next: "compare"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(input.Settings{})
			for _, rank := range []int{0, 1} {
				w.steps(rank, "n1", 100, 200, 50)
			}
			onset := w.now
			w.now = w.now.Add(5 * time.Second)
			w.slow(t, onset)
			w.now = w.now.Add(5 * time.Second)
			w.steps(0, "n1", 102, 208, 50+tt.load[0])
			if tt.moved {
				w.steps(1, "n2", 2, 8, tt.load[1])
			} else {
				w.steps(1, "n1", 102, 208, 50+tt.load[1])
			}
			evidence, next := w.slow(t, onset)
			assert.Equal(t, tt.evidence, evidence)
			assert.Contains(t, next, tt.next)
		})
	}
}
