package smoke

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// A training that only prints has steps, a loss and an end: nothing but the overlay is
// needed, and a file.
func TestLinesOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "llama.log")
	file, err := os.Create(name) //nolint:gosec // of this test
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("distribution", "config", "logs-files.yaml")},
		Env:    []string{"TRAINING_LOGS=[" + name + "]"},
		Dir:    dir, Overrides: map[string]any{"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::initial_zero": "0s"},
	})
	at := time.Now().Add(-100 * time.Second)
	const stamp = "2006-01-02 15:04:05.000000"
	for i := range 10 {
		at = at.Add(10 * time.Second)
		_, err = fmt.Fprintf(file, " [%s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:    16 | lm loss: %.6E | loss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
			at.Format(stamp), (i+1)*10, (i+1)*160, 7-float64(i)/10)
		require.NoError(t, err)
	}
	await := func(check func(*assert.CollectT, []harness.Sample)) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
			require.NoError(c, err)
			check(c, samples)
		}, harness.StartTimeout, 200*time.Millisecond)
	}
	await(func(c *assert.CollectT, samples []harness.Sample) {
		for name, want := range map[string]float64{"ml_steps_total": 100, "ml_samples_total": 1600, "ml_loss": 6.1, "ml_learning_rate": 1e-4} {
			if found := harness.Select(samples, name, harness.Labels{"job": "megatron"}); assert.Len(c, found, 1, name) {
				assert.InDelta(c, want, found[0].Value, 1e-9, name)
			}
		}
	})
	_, err = fmt.Fprintf(file, "[after training is done] datetime: %s\n", at.Format(time.DateTime))
	require.NoError(t, err)
	await(func(c *assert.CollectT, samples []harness.Sample) {
		ended := harness.Select(samples, "ml_run_state", harness.Labels{"ml_run_state": "ended"})
		if assert.Len(c, ended, 1) {
			assert.InDelta(c, 1, ended[0].Value, 0)
		}
		sum := harness.Select(samples, "ml_step_duration_seconds_sum", harness.Labels{"ml_phase": "step"})
		count := harness.Select(samples, "ml_step_duration_seconds_count", harness.Labels{"ml_phase": "step"})
		if assert.Len(c, sum, 1) && assert.Len(c, count, 1) {
			assert.InDelta(c, 1, sum[0].Value/count[0].Value, 1e-6)
			assert.GreaterOrEqual(c, count[0].Value, 99.0)
		}
	})
}
