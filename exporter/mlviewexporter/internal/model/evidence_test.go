package model_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
)

// fails adds failed requests of the service agent.
func (w *world) fails(class, fingerprint string, n int) {
	for i := range n {
		w.span(func(in *input.Span) {
			in.Source = &input.Source{Service: "agent"}
			in.ID, in.Failed, in.Class, in.Fingerprint = [8]byte{byte(i), 9}, true, class, fingerprint
		})
	}
}

// failing reports that the service agent fails since a time.
func (w *world) failing(since time.Time) {
	p := series.Point{Series: series.Problem, Value: float64(since.Unix())}
	p.Labels.Service, p.Labels.Own[0] = "agent", api.Failing
	ratio := series.Point{Series: series.ErrorRatio, Value: 0.12}
	ratio.Labels.Service, ratio.Labels.Own[0] = "agent", "recent"
	w.ApplyPoints([]series.Point{p, ratio})
}

// What to do next is about the class that failed most since the onset, and not
// about what failed last or before.
func TestWhatToDoAboutFailures(t *testing.T) {
	w := newWorld(input.Settings{})
	w.fails("ConnectionError", "c", 300)
	w.now = w.now.Add(time.Minute)
	onset := w.now
	w.fails("ToolTimeout", "t", 200)
	w.now = w.now.Add(5 * time.Second)
	w.fails("ConnectionError", "c", 2)
	w.failing(onset)
	need := func() api.Need {
		needs := w.state().Needs
		require.Len(t, needs, 1)
		return needs[0]
	}
	assert.Contains(t, need().Evidence, "since the onset: ToolTimeout 200×, ConnectionError 2×")
	assert.Equal(t, "Read the last failures of the service: most are ToolTimeout.", need().Next)
	assert.Empty(t, need().Command)

	found := []api.Failure{{Key: "c", Command: "python3 c.py", Replays: true}, {Key: "t", Command: "python3 t.py"}}
	w.SetFailures(found)
	assert.Equal(t, "See what is known of ToolTimeout.", need().Next, "the command does not replay it")
	assert.Equal(t, "python3 t.py", need().Command)
	found[1].Replays = true
	w.SetFailures(found)
	assert.Equal(t, "Reproduce ToolTimeout.", need().Next)
}

// A failure without a command says why.
func TestWhyNoReproduction(t *testing.T) {
	for _, reads := range []bool{true, false} {
		w := newWorld(input.Settings{Reproductions: reads})
		w.fails("E", "f", 1)
		w.fails("Other", "", 1)
		why := func(class string) string {
			for _, f := range w.state().Failures {
				if f.Class == class {
					return f.Why
				}
			}
			return "no failure"
		}
		if !reads {
			assert.Contains(t, why("E"), "set reproductions of ml_view")
			continue
		}
		assert.Contains(t, why("E"), "not yet written")
		assert.Contains(t, why("Other"), "none; repro_gen chose another span")
		w.now = w.now.Add(time.Minute)
		assert.Contains(t, why("E"), "not in the page's directory")
		w.SetFailures([]api.Failure{{Key: "f", Command: "python3 f.py", Why: "the span carries no recorded call"}})
		assert.Equal(t, "the span carries no recorded call", why("E"))
	}
}

// The failures since an onset are counted exactly while they are new.
func TestFailuresSinceTheOnset(t *testing.T) {
	for _, before := range []int{0, 1, 63, 64, 65, 5000} {
		w := newWorld(input.Settings{})
		w.fails("E", "", before)
		w.now = w.now.Add(time.Minute)
		w.fails("E", "", 7)
		w.failing(w.now)
		assert.Contains(t, strings.Join(w.state().Needs[0].Evidence, "; "), "E 7×", before)
	}
}
