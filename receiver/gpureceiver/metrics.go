package gpureceiver

import (
	"reflect"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// allMetrics returns all metrics of the receiver.
func allMetrics() []gpuMetric {
	return slices.Concat(
		driverMetrics(), activityMetrics(), memoryMetrics(), powerMetrics(), thermalMetrics(), clockMetrics(),
		pcieMetrics(), nvlinkMetrics(), healthMetrics(), workloadMetrics(),
	)
}

// describedBy are the quantities of resource attributes.
var describedBy = map[string]*device.Quantity{
	"hw.serial_number":        device.Serial,
	"hw.firmware_version":     device.VBIOS,
	"nvidia.gpu.architecture": device.Architecture,
	"nvidia.gpu.numa.node":    device.NUMANode,
	"nvidia.cuda.version":     device.CUDAVersion,
}

// metrics returns those that the configuration enables.
func (cfg *Config) metrics() []gpuMetric {
	enabled := enabledNames(cfg.Metrics)
	return slices.DeleteFunc(allMetrics(), func(m gpuMetric) bool {
		return !enabled[m.name] || m.when != nil && !m.when(cfg)
	})
}

// wants returns a function that reports whether an enabled metric or resource
// attribute needs a quantity.
func (cfg *Config) wants() func(*device.Quantity) bool {
	wanted := make(map[*device.Quantity]bool)
	for _, m := range cfg.metrics() {
		for _, quantity := range m.of {
			wanted[quantity] = true
		}
	}
	for name := range enabledNames(cfg.MetricsBuilderConfig.ResourceAttributes) {
		if quantity, found := describedBy[name]; found {
			wanted[quantity] = true
		}
	}
	return func(q *device.Quantity) bool { return wanted[q] }
}

// enabledNames returns the names that a generated configuration has enabled.
func enabledNames(group any) map[string]bool {
	names := make(map[string]bool)
	fields := reflect.ValueOf(group)
	for i := range fields.NumField() {
		if fields.Field(i).FieldByName("Enabled").Bool() {
			names[fields.Type().Field(i).Tag.Get("mapstructure")] = true
		}
	}
	return names
}
