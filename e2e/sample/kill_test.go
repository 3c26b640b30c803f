package sample_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// A collector that is killed loses what waits for its decision, and nothing that was
// decided.
func TestAKillLosesWhatWaits(t *testing.T) {
	sink := harness.StartSink(t)
	start := func() *harness.Collector {
		collector := harness.StartCollector(t, harness.CollectorOptions{
			Config: harness.Path("distribution", "config", "production.yaml"),
			Env:    []string{"JAEGER_ENDPOINT=" + sink.Endpoint, "OTELCOL_ML_REPRO_DIR=" + t.TempDir()},
			Overrides: map[string]any{
				"processors::ml_sample": map[string]any{
					"steps": map[string]any{"one_in": 1},
					"calls": map[string]any{"one_in": 1},
					"wait":  "2s",
				},
				"service::pipelines::traces/out::processors": []string{"ml_sample", "ml_guard/content"},
			},
		})
		collector.AwaitHealthy(t)
		return collector
	}
	send := func(to *harness.Collector, seed int64) *sentlog.Log {
		return harness.Generate(t, to, harness.Workload{
			Seed: seed, Fleet: "runs=1,ranks=4,gpus=0", Ranks: 1, Rate: 50, Duration: 2 * time.Second, MetricsInterval: time.Minute,
		})
	}
	missing := func(log *sentlog.Log) (spans int) {
		arrived := make(map[string]bool)
		for _, span := range sink.Spans() {
			arrived[span.TraceID().String()+span.SpanID().String()] = true
		}
		for _, span := range log.Spans {
			if !arrived[span.TraceID+span.SpanID] {
				spans++
			}
		}
		return spans
	}
	arrives := func(log *sentlog.Log) {
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Zero(c, missing(log)) }, harness.ArrivalTimeout, harness.ArrivalPoll)
	}
	first := start()
	decided := send(first, 5)
	arrives(decided)
	waits := send(first, 6)
	first.Kill(t)
	t.Logf("the kill lost %d of the %d spans that waited or were being sent", missing(waits), len(waits.Spans))
	arrives(send(start(), 7))
	assert.Zero(t, missing(decided))
}
