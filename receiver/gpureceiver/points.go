package gpureceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// sourceReplay is the value of nvidia.gpu.source on all recorded data.
const sourceReplay = "replay"

// hwTypeGPU is the value of hw.type.
const hwTypeGPU = metadata.AttributeHwTypeGpu

// points makes the points of one GPU at one time. A reading that is unavailable
// makes no point.
type points struct {
	*metadata.MetricsBuilder
	cfg   *Config
	now   pcommon.Timestamp
	id    string
	host  string
	index int64
	// labels are the attributes of every point beside the metric's own.
	labels []metadata.MetricAttributeOption
}

// with returns more attributes and the labels.
func (p *points) with(more ...metadata.MetricAttributeOption) []metadata.MetricAttributeOption {
	return append(more, p.labels...)
}

// hostLabels returns the attributes of every point of a snapshot beside the
// metric's own.
func hostLabels(snapshot *device.Snapshot) []metadata.MetricAttributeOption {
	if !snapshot.Replayed {
		return nil
	}
	return []metadata.MetricAttributeOption{metadata.WithNvidiaGpuSourceMetricAttribute(sourceReplay)}
}

// oneIf returns 1 for true and 0 for false.
func oneIf(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}

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
