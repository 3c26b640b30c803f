package gpureceiver

import (
	"reflect"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// sourceReplay is the value of nvidia.gpu.source on all recorded data.
const sourceReplay = "replay"

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

// readingPoint is a point of a metric that is made of a quantity.
type readingPoint struct {
	metric string
	of     *device.Quantity
	record func(*points, float64)
}

// readings returns the points of the metrics that the configuration enables.
func (cfg *Config) readings() []readingPoint {
	enabled := enabledNames(cfg.Metrics)
	return slices.DeleteFunc(slices.Clone(readingPoints), func(p readingPoint) bool { return !enabled[p.metric] })
}

// wants returns a function that reports whether an enabled metric or resource
// attribute needs a quantity.
func (cfg *Config) wants() func(*device.Quantity) bool {
	wanted := make(map[*device.Quantity]bool)
	for _, p := range cfg.readings() {
		wanted[p.of] = true
	}
	for _, group := range [...]any{cfg.Metrics, cfg.MetricsBuilderConfig.ResourceAttributes} {
		for name := range enabledNames(group) {
			for _, quantity := range needs[name] {
				wanted[quantity] = true
			}
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

// recordReadings makes the points of readings.
func (p *points) recordReadings(enabled []readingPoint, r *device.Readings) {
	for i := range enabled {
		if v := enabled[i].of.Of(r); v.Known {
			enabled[i].record(p, v.Value)
		}
	}
	if used, total := device.MemoryUsed.Of(r), device.MemoryTotal.Of(r); used.Known && total.Known {
		p.RecordHwGpuMemoryUtilizationDataPoint(p.now, used.Value/total.Value, p.id, p.host, p.index, p.labels...)
	}
}

// recordStatus makes the points of a GPU's health, and none if it is unknown.
func (p *points) recordStatus(present health.State) {
	if present == "" {
		return
	}
	for _, state := range health.States {
		p.RecordHwStatusDataPoint(p.now, shared.OneIf[int64](state == present), p.id, p.host, p.index,
			metadata.AttributeHwTypeGpu, metadata.MapAttributeHwState[string(state)], p.labels...)
	}
}

// recordXIDs makes the points of a GPU's error counts.
func (p *points) recordXIDs(errors *errorCounts) {
	if !p.cfg.Metrics.NvidiaGpuXidErrors.Enabled {
		return
	}
	for of, count := range errors.of(p.id) {
		var a workload.Attributes[metadata.MetricAttributeOption]
		a.Number(of.gpuInstance, metadata.WithNvidiaGpuMigGpuInstanceIDMetricAttribute)
		a.Number(of.computeInstance, metadata.WithNvidiaGpuMigComputeInstanceIDMetricAttribute)
		p.RecordNvidiaGpuXidErrorsDataPoint(p.now, count, p.id, p.host, p.index, of.code, p.with(a...)...)
	}
}

// recordDriver emits the metrics about all GPUs on a resource of the host.
func recordDriver(metrics *metadata.MetricsBuilder, now pcommon.Timestamp, snapshot *device.Snapshot, errors *errorCounts) {
	labels := hostLabels(snapshot)
	if !snapshot.OnlyAMD() {
		for _, state := range device.DriverStates {
			metrics.RecordNvidiaGpuDriverStateDataPoint(now, shared.OneIf[int64](state == snapshot.Driver), snapshot.Host,
				metadata.MapAttributeNvidiaGpuDriverState[string(state)], labels...)
		}
	}
	for _, source := range workload.Sources {
		present := snapshot.Attribution[source]
		if present == "" {
			continue
		}
		for _, state := range workload.SourceStates {
			metrics.RecordNvidiaGpuAttributionDataPoint(now, shared.OneIf[int64](state == present), snapshot.Host,
				metadata.MapAttributeNvidiaGpuAttributionSource[string(source)],
				metadata.MapAttributeNvidiaGpuAttributionState[string(state)], labels...)
		}
	}
	if snapshot.KernelLog != "" {
		for _, state := range kernellog.States {
			metrics.RecordNvidiaGpuKernelLogStateDataPoint(now, shared.OneIf[int64](string(state) == snapshot.KernelLog), snapshot.Host,
				metadata.MapAttributeNvidiaGpuKernelLogState[string(state)])
		}
	}
	for of, count := range errors.of(ofSwitches) {
		metrics.RecordNvidiaNvswitchSxidErrorsDataPoint(now, count, snapshot.Host, of.address, of.code, of.fatal)
	}

	metrics.EmitForResource(metadata.WithResource(describe(metrics.NewResourceBuilder(), &snapshot.System, nil)))
}

// recordIdentity makes the point of a GPU's identity.
func (p *points) recordIdentity(snapshot *device.Snapshot, gpu *device.Identity) {
	var a workload.Attributes[metadata.MetricAttributeOption]
	a.Text(gpu.Name, metadata.WithHwNameMetricAttribute)
	a.Text(snapshot.DriverVersion, metadata.WithHwDriverVersionMetricAttribute)
	a.Text(gpu.PCIBusID, metadata.WithNvidiaGpuPciBusIDMetricAttribute)
	if mig := gpu.MIG; mig != nil {
		a.Number(workload.Number{Value: int64(mig.GPUInstance), Known: true}, metadata.WithNvidiaGpuMigGpuInstanceIDMetricAttribute)
		a.Number(workload.Number{Value: int64(mig.ComputeInstance), Known: true}, metadata.WithNvidiaGpuMigComputeInstanceIDMetricAttribute)
		a.Text(mig.Profile, metadata.WithNvidiaGpuMigProfileMetricAttribute)
	}
	p.RecordNvidiaGpuInfoDataPoint(p.now, 1, p.id, p.host, p.index, p.with(a...)...)
}
