// Package seriespage writes what the receiver's metrics are called in Prometheus.
package seriespage

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

const declarations = "../../metadata.yaml"

func TestPageIsGeneratedFromTheMetadata(t *testing.T) {
	golden.File(t, "../../series.md", page(declared(t)))
}

// declared returns the metrics of metadata.yaml.
func declared(t *testing.T) []metric {
	t.Helper()
	text, err := os.ReadFile(declarations)
	require.NoError(t, err)
	metrics, err := parse(text)
	require.NoError(t, err)
	return metrics
}

// Dashboards and the rules of docker/prometheus rely on these names. One of
// each kind of unit and type is enough: the library translates the rest alike.
func TestPrometheusNames(t *testing.T) {
	names := map[string]string{}
	for _, m := range declared(t) {
		names[m.name] = m.prometheus
	}
	for name, want := range map[string]string{
		"hw.gpu.utilization":                       "hw_gpu_utilization_ratio",
		"hw.fan.speed_ratio":                       "hw_fan_speed_ratio",
		"hw.gpu.memory.usage":                      "hw_gpu_memory_usage_bytes",
		"hw.energy":                                "hw_energy_joules_total",
		"hw.power":                                 "hw_power_watts",
		"hw.temperature":                           "hw_temperature_celsius",
		"hw.errors":                                "hw_errors_total",
		"hw.status":                                "hw_status",
		"hw.gpu.io":                                "hw_gpu_io_bytes_total",
		"nvidia.gpu.busy.time":                     "nvidia_gpu_busy_time_seconds_total",
		"nvidia.gpu.clock.frequency":               "nvidia_gpu_clock_frequency_hertz",
		"nvidia.gpu.info":                          "nvidia_gpu_info",
		"nvidia.gpu.pcie.throughput":               "nvidia_gpu_pcie_throughput_bytes_per_second",
		"nvidia.gpu.workload.memory.usage":         "nvidia_gpu_workload_memory_usage_bytes",
		"nvidia.gpu.memory.remapped_rows":          "nvidia_gpu_memory_remapped_rows_total",
		"nvidia.gpu.xid.errors":                    "nvidia_gpu_xid_errors_total",
		"nvidia.gpu.memory.remap_failed":           "nvidia_gpu_memory_remap_failed",
		"nvidia.gpu.throttle.time":                 "nvidia_gpu_throttle_time_seconds_total",
		"nvidia.gpu.pipe.utilization":              "nvidia_gpu_pipe_utilization_ratio",
		"nvidia.gpu.power.limit":                   "nvidia_gpu_power_limit_watts",
		"nvidia.gpu.memory.retired_pages":          "nvidia_gpu_memory_retired_pages_total",
		"nvidia.gpu.process.memory.usage":          "nvidia_gpu_process_memory_usage_bytes",
		"nvidia.gpu.ecc.errors.lifetime":           "nvidia_gpu_ecc_errors_lifetime_total",
		"nvidia.gpu.nvlink.io":                     "nvidia_gpu_nvlink_io_bytes_total",
		"nvidia.gpu.processes":                     "nvidia_gpu_processes",
		"nvidia.gpu.workload.utilization":          "nvidia_gpu_workload_utilization_ratio",
		"nvidia.gpu.memory.reserved":               "nvidia_gpu_memory_reserved_bytes",
		"nvidia.gpu.driver.state":                  "nvidia_gpu_driver_state",
		"nvidia.gpu.sm.occupancy":                  "nvidia_gpu_sm_occupancy_ratio",
		"nvidia.gpu.pcie.replays":                  "nvidia_gpu_pcie_replays_total",
		"nvidia.gpu.memory.controller.utilization": "nvidia_gpu_memory_controller_utilization_ratio",
	} {
		assert.Equal(t, want, names[name], name)
	}
}

func TestMalformedMetadataIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, err string }{
		"no YAML":           {"metrics: [", "yaml"},
		"no metric":         {"metrics:\n", "it declares no metric"},
		"neither kind":      {"metrics: {a.b: {unit: s}}", `"a.b" is neither gauge nor sum`},
		"untranslated name": {"metrics: {\"\": {gauge: {}}}", "translate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]byte(test.text))
			require.ErrorContains(t, err, test.err)
		})
	}
}

// page returns the table as Markdown.
func page(metrics []metric) string {
	var b strings.Builder
	b.WriteString(`# Series of the gpu receiver in Prometheus

<!-- Generated from metadata.yaml by "go generate". Do not edit. -->

The names are those of the prometheus exporter as it is by default.
[documentation.md](documentation.md) says what each means, whether it is on by default, its kind, unit and attributes: the
labels have underscores in place of their dots. Every series about a GPU has
` + "`hw_id`, `host_name` and `nvidia_gpu_index`" + `, of a MIG device ` + "`hw_parent`" + `
as well, and of a recording ` + "`nvidia_gpu_source`" + `.

`)
	for _, m := range metrics {
		fmt.Fprintf(&b, "- [`%s`](documentation.md#%s): `%s`\n", m.name, strings.ReplaceAll(m.name, ".", ""), m.prometheus)
	}
	return b.String()
}
