package sample_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// A run hangs. ml_metrics reports it as a log record, and ml_sample, which has kept
// nothing of the run, keeps the last steps of all ranks. repro_gen gathers what the host knows.
func TestAHangReleasesTheStepsBeforeIt(t *testing.T) {
	const before, ranks, checkpointEvery = 5, 16, 50
	sink := harness.StartSink(t)
	processors, reproductions := []string{"ml_sample", "ml_guard/content"}, t.TempDir()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "production.yaml"),
		Env:    []string{"JAEGER_ENDPOINT=" + sink.Endpoint, "OTELCOL_ML_REPRO_DIR=" + reproductions},
		Overrides: map[string]any{
			"processors::ml_sample": map[string]any{
				"steps": map[string]any{"one_in": 1_000_000, "slow_quantile": 0, "slow": 0, "first": 0, "before": before},
				"wait":  "2s",
			},
			"service::pipelines::traces/out::processors":   processors,
			"service::pipelines::logs/derived::processors": append([]string{"repro_gen"}, processors...),
			"connectors::ml_metrics::flush_interval":       "1s",
			"connectors::ml_metrics::stall_timeout":        "3s",
			"connectors::ml_metrics::idle_timeout":         "3s",
		},
	})
	collector.AwaitHealthy(t)
	generator := harness.StartGenerator(t, harness.Endpoints{GRPC: collector.Address(t, "receivers::otlp::protocols::grpc")}, harness.Workload{
		Seed: 4, Incidents: "hang", Ranks: 1, Rate: 20, MetricsInterval: time.Second,
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		steps := make(map[int64]int)
		for _, span := range sink.Spans() {
			if v, ok := span.Attributes().Get("ml.step"); ok {
				steps[v.Int()]++
			}
		}
		hung := int64(0)
		for number := range steps {
			hung = max(hung, number)
		}
		for number := range steps {
			if number <= hung-before {
				assert.Zero(c, number%checkpointEvery, "only checkpoints are rare")
			}
		}
		for number := hung - before + 1; number < hung; number++ {
			assert.Equal(c, ranks*5, steps[number], "step %d", number)
		}
		assert.Equal(c, ranks+ranks-1, steps[hung], "each rank has loaded data, one has not ended its forward pass")
		evidence, _ := filepath.Glob(filepath.Join(reproductions, "*", "*", "report.md"))
		var said bytes.Buffer
		for _, file := range evidence {
			report, _ := os.ReadFile(file)
			said.Write(report)
		}
		assert.Regexp(c, `(?m)^# .*\n\nSince .*\n(.*\n)*## Processes of the run on this host\n`, said.String())
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
	generator.Stop(t)
}
