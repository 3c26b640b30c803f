package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// startRemoteWriter starts a gateway that writes to a Prometheus.
func startRemoteWriter(t *testing.T, name string, to *harness.Prometheus) (*harness.Collector, *harness.GRPCSender) {
	t.Helper()
	dir := t.TempDir()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "gateway.yaml"),
		Env: []string{
			"METRICS_EXPORTER=prometheus_remote_write", "REMOTE_WRITE_URL=" + to.URL() + "/api/v1/write",
			"COLLECTOR_INSTANCE_ID=" + name, "OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue"),
		},
		Dir: dir,
		Overrides: map[string]any{
			// Spans go nowhere else.
			"service::pipelines::traces/out::exporters": []string{"debug"},
			"connectors::ml_metrics::flush_interval":    "1s",
			"connectors::ml_metrics::initial_zero":      "3s",
			"connectors::ml_metrics::stall_timeout":     "12s",
		},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	return collector, sender
}

// receiverOfWrites starts a Prometheus with the shipped rules that is written to.
func receiverOfWrites(t *testing.T) *harness.Prometheus {
	t.Helper()
	return harness.StartPrometheusAt(t, harness.Path("docker", "prometheus", "prometheus.yaml"), map[string]string{
		`["otelcol-ml:8889"]`:     "[]",
		`["otelcol-ml:8888"]`:     "[]",
		"evaluation_interval: 5s": "evaluation_interval: 1s",
	}, "--web.enable-remote-write-receiver")
}

// rejected are the counters of samples that a Prometheus or a gateway has lost.
var rejected = []string{
	"prometheus_tsdb_out_of_order_samples_total", "prometheus_tsdb_too_old_samples_total", "prometheus_tsdb_out_of_bound_samples_total",
	"otelcol_exporter_send_failed_metric_points", "otelcol_exporter_enqueue_failed_metric_points",
}

// TestRemoteWrite has two gateways write the series of two runs to one Prometheus: one
// run moves from gateway to gateway, the traces of the other are shared out. No sample
// of one gateway is in the way of one of the other, and the shipped rules count each run
// once.
func TestRemoteWrite(t *testing.T) {
	prometheus, alone := receiverOfWrites(t), receiverOfWrites(t)
	w := &writers{oneOfGPU: true}
	var gateways [3]*harness.Collector
	gateways[0], w.first = startRemoteWriter(t, "gateway-0", prometheus)
	gateways[1], w.second = startRemoteWriter(t, "gateway-1", prometheus)
	gateways[2], w.all = startRemoteWriter(t, "gateway-2", alone)

	moved, stop, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.train(t.Context(), moved, stop) }()
	running := func(gateway string) string {
		return `ml_run_state{ml_run_id="` + movedRun + `",collector_instance_id="` + gateway + `",ml_run_state="running"}`
	}
	prometheus.AwaitValues(t, running("gateway-0"), "ml_run_id", map[string]float64{movedRun: 1})
	close(moved)
	prometheus.AwaitValues(t, running("gateway-1"), "ml_run_id", map[string]float64{movedRun: 1})
	prometheus.AwaitValues(t, running("gateway-0"), "ml_run_id", map[string]float64{movedRun: 0})

	for expression, part := range map[string]float64{
		`run:state`:                 0,
		`run:ml_steps:rate5m`:       0.15,
		`run:goodput:ratio_rate15m`: 0.1,
	} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			wanted, got := byRun(t, alone, expression), byRun(t, prometheus, expression)
			assert.GreaterOrEqual(c, len(wanted), 2, "each run has %s", expression)
			assert.Len(c, got, len(wanted), expression)
			for of, value := range wanted {
				assert.InDelta(c, value, got[of], part*value, "%s of %s", expression, of)
			}
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
	}
	close(stop)
	require.NoError(t, <-ended)
	sent := float64(w.sent)
	prometheus.AwaitValues(t, "sum by (ml_run_id) (ml_steps_total)", "ml_run_id", map[string]float64{sharedRun: sent, movedRun: sent})
	series, err := prometheus.Series(t.Context(), `{__name__=~"ml_.*|traces_span_metrics_.*",collector_instance_id="",__name__!~"ml_run_info"}`)
	require.NoError(t, err)
	assert.Empty(t, series, "series without their writer")
	series, err = prometheus.Series(t.Context(), `target_info`)
	require.NoError(t, err)
	assert.Empty(t, series, "several gateways would write it")

	for _, one := range gateways {
		assert.Empty(t, lost(t, one.Address(t, harness.TelemetryPath)))
	}
	assert.Empty(t, lost(t, prometheus.URL()))
	for _, one := range gateways {
		assert.Zero(t, one.Stop(t))
		for _, entry := range harness.LogErrors(one.Output()) {
			assert.True(t, harness.IsAbsentBackend(entry), entry)
		}
	}
}

// lost returns the counters of lost samples that are not 0.
func lost(t *testing.T, address string) (counted []string) {
	t.Helper()
	samples, err := harness.Scrape(t.Context(), strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	for _, name := range rejected {
		for _, one := range harness.Select(samples, name, nil) {
			if one.Value != 0 {
				counted = append(counted, fmt.Sprint(name, one.Labels, one.Value))
			}
		}
	}
	return counted
}
