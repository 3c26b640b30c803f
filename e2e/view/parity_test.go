package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// TestParity shows that the page and Prometheus have the same numbers, of every
// client's telemetry and of a site with incidents.
func TestParity(t *testing.T) {
	for name, workload := range map[string]harness.Workload{
		"scenarios": {Seed: 7, Scenarios: "all", Duration: 20 * time.Second, Rate: 4, Ranks: 2, MetricsInterval: metricsInterval},
		"incidents": {Seed: 7, Incidents: "all", Duration: 15 * time.Second, Rate: 20, Ranks: 2, MetricsInterval: metricsInterval},
		"fleet":     {Seed: 7, Fleet: "runs=12,ranks=2,gpus=16", Duration: 12 * time.Second, Rate: 20, Ranks: 2, MetricsInterval: metricsInterval},
	} {
		t.Run(name, func(t *testing.T) {
			c := startCollector(t)
			harness.GenerateTo(t, endpoints(t, c), workload)
			view.AwaitParity(t, c)

			state, err := view.Read(t.Context(), c.Address(t, "exporters::ml_view"))
			require.NoError(t, err)
			assert.True(t, state.Collector.Simulated)
			assert.NotEmpty(t, state.Runs)
			for _, run := range state.Runs {
				assert.True(t, run.Simulated, "%s/%s", run.Service, run.ID)
			}
			assert.NotEmpty(t, state.GPUs)
			for _, gpu := range state.GPUs {
				assert.True(t, gpu.Simulated, "%s:%s", gpu.Host, gpu.Index)
			}
		})
	}
}
