package mlmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// refusesAll has the collector refuse data all the time. Tests that set it are not parallel
// to others.
var refusesAll bool

// refuses has the collector refuse data until the test ends, or end is called.
func refuses(t *testing.T) (end func()) {
	t.Helper()
	refusesAll = true
	end = func() { refusesAll = false }
	t.Cleanup(end)
	return end
}

// openIn returns the problems that are open in an emission.
func openIn(t *testing.T, md pmetric.Metrics) map[string]time.Time {
	t.Helper()
	open, _ := problems(t, md)
	return open
}

// While the collector refuses data, nothing is a problem because something did not
// arrive, and everything else is.
func TestNoProblemOfSilenceBeginsWhileDataIsRefused(t *testing.T) {
	kinds := kindsOfRuns()
	for _, kind := range mlattr.Problems {
		if kinds[kind.Name] == nil {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			refuses(t)
			if found := kinds[kind.Name](t); kind.FromSilence {
				assert.NotContains(t, found, kind.Name)
			} else {
				assert.Contains(t, found, kind.Name)
			}
		})
	}
}

// A run that hangs while data is refused stays what it was, with a notice that says
// why, until five minutes after the last refusal.
func TestARunThatHangsWhileDataIsRefused(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	end := refuses(t)
	alive := func() { r.holdsGPU(t, "run-a", 1<<30) }
	began := r.clock
	for range 20 {
		r.work(t, "forward", time.Second)
		r.work(t, "optimizer", time.Second)
	}
	md := r.every(t, 30*time.Minute, alive)
	assert.Equal(t, "running", state(t, md))
	assert.Empty(t, openIn(t, md))
	notices := r.connector.notices()
	require.Len(t, notices, 1)
	assert.Equal(t, "Withholds problems of silence", notices[0].What)
	assert.False(t, notices[0].Since.Before(began))
	assert.True(t, notices[0].Since.Before(began.Add(2*time.Minute)), "since the first refusal")
	refused := began.Add(-time.Hour)
	defer r.connector.state.PublishNotices("ml_metrics", r.connector.notices)()
	defer r.connector.state.PublishNotices("ml_guard", func() []shared.Notice {
		return []shared.Notice{{Key: "refused logs", Kind: "refused", Since: began}, {Key: "refused traces", Kind: "refused", Since: refused}, {Key: "limit", Kind: "limit"}}
	})()
	told, _ := gauges(t, r.every(t, time.Minute, alive), "ml.collector.notice.timestamp")
	assert.Equal(t, map[string]float64{"/withheld": float64(notices[0].Since.UnixNano()) / 1e9, "/refused": float64(refused.UnixNano()) / 1e9}, told)

	end()
	last := r.connector.state.LastRefusal()
	md = r.every(t, problem.WithheldFor-time.Minute, alive)
	assert.Equal(t, "running", state(t, md), "senders may still send what was refused")
	md = r.every(t, time.Minute, alive)
	require.Equal(t, problem.WithheldFor, r.clock.Sub(last))
	assert.Equal(t, "stalled", state(t, md))
	assert.Contains(t, openIn(t, md), "trainer/looks_hung/run-a")
	assert.Empty(t, r.connector.notices())
	told, over := gauges(t, md, "ml.collector.notice.timestamp")
	assert.Equal(t, map[string]float64{"/refused": float64(refused.UnixNano()) / 1e9}, told)
	assert.Equal(t, []string{"/withheld"}, over)

	end = refuses(t)
	md = r.every(t, 10*time.Minute, alive)
	assert.Equal(t, "stalled", state(t, md), "what was concluded before stays")
	assert.Contains(t, openIn(t, md), "trainer/looks_hung/run-a")
	end()
}
