package view_test

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// metricsInterval is how often the simulated processes and GPUs send metrics.
const metricsInterval = time.Second

// startCollector starts the demo's collector with timeouts that are short enough
// for a test, and with overrides.
func startCollector(t *testing.T, overrides ...map[string]any) *harness.Collector {
	t.Helper()
	all := map[string]any{
		"connectors::ml_metrics::stall_timeout":      "3s",
		"connectors::ml_metrics::idle_timeout":       "3s",
		"connectors::ml_metrics::first_step_timeout": "3s",
		"connectors::ml_metrics::flush_interval":     "1s",
		"connectors::ml_metrics::initial_zero":       "1s",
		"exporters::ml_view::interval":               "500ms",
	}
	for _, more := range overrides {
		maps.Copy(all, more)
	}
	c := harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "demo.yaml"),
		Overrides: all,
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(t.TempDir(), "reproductions"),
		},
	})
	c.AwaitHealthy(t)
	return c
}

func endpoints(t *testing.T, c *harness.Collector) harness.Endpoints {
	t.Helper()
	return harness.Endpoints{
		GRPC: c.Address(t, "receivers::otlp::protocols::grpc"),
		HTTP: "http://" + c.Address(t, "receivers::otlp::protocols::http"),
	}
}
