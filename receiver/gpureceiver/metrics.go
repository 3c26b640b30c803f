package gpureceiver

import (
	"reflect"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// gpuMetric is a metric, or a part of its points, with what it is made of.
type gpuMetric struct {
	name string
	// of are the quantities that the points need.
	of []*device.Quantity
	// when reports whether the configuration asks for these points. Nil means
	// always.
	when func(*Config) bool
	// record makes the points of readings. It is nil where they are made of
	// something else.
	record func(*points, *device.Readings)
}

// declared names the metrics of metadata.yaml.
var declared = &metadata.MetricsInfo

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

type builder = metadata.MetricsBuilder

// number is a metric whose points are made of a quantity.
func number[T int64 | float64](name string, of *device.Quantity, record func(*points, T)) gpuMetric {
	return gpuMetric{name: name, of: []*device.Quantity{of}, record: func(p *points, r *device.Readings) {
		if v := of.Of(r); v.Known {
			record(p, T(v.Value))
		}
	}}
}

// recorder is a method of the builder that makes a point of a GPU.
type recorder[T int64 | float64] = func(*builder, pcommon.Timestamp, T, string, string, int64, ...metadata.MetricAttributeOption)

// recorderBy is a recorder for points with one attribute of their own.
type recorderBy[T int64 | float64, A any] = func(*builder, pcommon.Timestamp, T, string, string, int64, A, ...metadata.MetricAttributeOption)

// plain is a metric whose one point is a quantity.
func plain[T int64 | float64](name string, of *device.Quantity, record recorder[T]) gpuMetric {
	return number(name, of, func(p *points, value T) {
		record(p.MetricsBuilder, p.now, value, p.id, p.host, p.index, p.labels...)
	})
}

// labelled is the point of a metric that has this value of the metric's own
// attribute.
func labelled[T int64 | float64, A any](name string, of *device.Quantity, record recorderBy[T, A], attribute A) gpuMetric {
	return number(name, of, func(p *points, value T) {
		record(p.MetricsBuilder, p.now, value, p.id, p.host, p.index, attribute, p.labels...)
	})
}

// each is a metric with a point for each member of a set. The metric's own
// attribute has the members' names.
func each[T int64 | float64, A any](name string, of *device.Set, record recorderBy[T, A], attributes map[string]A) []gpuMetric {
	metrics := make([]gpuMetric, 0, len(of.Names))
	for _, member := range of.Names {
		metrics = append(metrics, labelled(name, of.Member(member), record, attributes[member]))
	}
	return metrics
}

// needs is a metric whose points are not made of readings, and for which a
// source has to read some quantities.
func needs(name string, of ...*device.Quantity) gpuMetric {
	return gpuMetric{name: name, of: of}
}
