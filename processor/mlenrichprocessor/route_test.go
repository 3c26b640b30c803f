package mlenrichprocessor

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// passTraces, passMetrics and passLogs return what comes out, call by call, for
// what goes in, call by call.
func (p *pipelines) passTraces(t *testing.T, in []ptrace.Traces) []ptrace.Traces {
	t.Helper()
	p.tracesOut.Reset()
	for _, td := range in {
		own := ptrace.NewTraces()
		td.CopyTo(own)
		require.NoError(t, p.traces.ConsumeTraces(t.Context(), own))
	}
	return p.tracesOut.AllTraces()
}

func (p *pipelines) passMetrics(t *testing.T, in []pmetric.Metrics) []pmetric.Metrics {
	t.Helper()
	p.metricsOut.Reset()
	for _, md := range in {
		own := pmetric.NewMetrics()
		md.CopyTo(own)
		require.NoError(t, p.metrics.ConsumeMetrics(t.Context(), own))
	}
	return p.metricsOut.AllMetrics()
}

func (p *pipelines) passLogs(t *testing.T, in []plog.Logs) []plog.Logs {
	t.Helper()
	p.logsOut.Reset()
	for _, ld := range in {
		own := plog.NewLogs()
		ld.CopyTo(own)
		require.NoError(t, p.logs.ConsumeLogs(t.Context(), own))
	}
	return p.logsOut.AllLogs()
}

// texts writes what came out, call by call.
func texts[T any](t *testing.T, write func(testing.TB, T) string, calls []T) (list []string) {
	t.Helper()
	for _, call := range calls {
		list = append(list, write(t, call))
	}
	return list
}

// crossesRoutes are the cases in which what a span gets depends on spans of other
// routes in the same request. A gateway that does not see these cannot know that
// the agent did: these cases come to the second in one call.
var crossesRoutes = map[string]bool{"links": true}

func together(calls []ptrace.Traces) []ptrace.Traces {
	all := ptrace.NewTraces()
	for _, call := range calls {
		call.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return []ptrace.Traces{all}
}

// TestTwoInARow passes each golden input through the ml_enrich of an agent and
// then through those of gateways: what the first said, the second leaves.
func TestTwoInARow(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "*", "case.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, second := range []struct {
		name   string
		routes bool
	}{{"gateway", false}, {"another agent", true}} {
		for _, path := range cases {
			dir := filepath.Dir(path)
			t.Run(second.name+"/"+filepath.Base(dir), func(t *testing.T) {
				first, behind := loadConfig(t, filepath.Join(dir, "config.yaml")), loadConfig(t, filepath.Join(dir, "config.yaml"))
				first.RouteByRun, behind.RouteByRun = true, second.routes
				one, two := start(t, first), start(t, behind)
				before := filepath.Join(dir, "before.txt")
				if _, err := os.Stat(before); err == nil {
					two.passTraces(t, one.passTraces(t, []ptrace.Traces{golden.ReadTraces(t, before)}))
				}
				switch golden.Signal(t, path) {
				case "traces":
					out := one.passTraces(t, []ptrace.Traces{golden.ReadTraces(t, path)})
					if crossesRoutes[filepath.Base(dir)] {
						out = together(out)
						assert.Equal(t, texts(t, golden.Traces, out), texts(t, golden.Traces, together(two.passTraces(t, out))))
						return
					}
					assert.Equal(t, texts(t, golden.Traces, out), texts(t, golden.Traces, two.passTraces(t, out)))
				case "metrics":
					out := one.passMetrics(t, []pmetric.Metrics{golden.ReadMetrics(t, path)})
					assert.Equal(t, texts(t, golden.Metrics, out), texts(t, golden.Metrics, two.passMetrics(t, out)))
				case "logs":
					out := one.passLogs(t, []plog.Logs{golden.ReadLogs(t, path)})
					assert.Equal(t, texts(t, golden.Logs, out), texts(t, golden.Logs, two.passLogs(t, out)))
				}
			})
		}
	}
}

// TestTheSecondCostsLess compares what the same spans cost the ml_enrich of an
// agent and that of a gateway behind it.
func TestTheSecondCostsLess(t *testing.T) {
	const rounds = 10
	for name, batch := range benchBatches(512) {
		t.Run(name, func(t *testing.T) {
			first, second := startDefault(t), startDefault(t)
			var sent, enriched []ptrace.Traces
			for i := range rounds + 2 {
				td := ptrace.NewTraces()
				batch.CopyTo(td)
				renew(td, i)
				enriched = append(enriched, first.sendTraces(t, td))
				sent = append(sent, td)
			}
			// allocations returns the least of several rounds: the race detector lets
			// the pool lose memory now and then.
			allocations := func(p *pipelines, calls []ptrace.Traces) float64 {
				least, next := math.Inf(1), 0
				for range rounds / 2 {
					least = min(least, testing.AllocsPerRun(1, func() {
						p.tracesOut.Reset()
						assert.NoError(t, p.traces.ConsumeTraces(t.Context(), calls[next]))
						next++
					}))
				}
				return least
			}
			own := allocations(startDefault(t), sent)
			behind := allocations(second, enriched)
			t.Logf("%.0f allocations by the first, %.0f by the second", own, behind)
			assert.LessOrEqual(t, behind, own)
			assert.Less(t, behind, 512.0, "the second adds to spans")
		})
	}
}
