package gpureceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/kernellog"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// driverMetrics are those about the driver and the GPUs' identity.
func driverMetrics() []gpuMetric {
	return []gpuMetric{
		needs(declared.NvidiaGpuDriverState.Name),
		needs(declared.NvidiaGpuAttribution.Name, device.ProcessList),
		needs(declared.NvidiaGpuInfo.Name),
		needs(declared.NvidiaGpuKernelLogState.Name),
		needs(declared.NvidiaNvswitchSxidErrors.Name),
	}
}

// recordDriver emits the metrics about all GPUs on a resource of the host.
func recordDriver(metrics *builder, now pcommon.Timestamp, snapshot *device.Snapshot, errors *errorCounts) {
	labels := hostLabels(snapshot)
	for _, state := range device.DriverStates {
		metrics.RecordNvidiaGpuDriverStateDataPoint(now, oneIf(state == snapshot.Driver), snapshot.Host,
			metadata.MapAttributeNvidiaGpuDriverState[string(state)], labels...)
	}
	for _, source := range workload.Sources {
		present := snapshot.Attribution[source]
		if present == "" {
			continue
		}
		for _, state := range workload.SourceStates {
			metrics.RecordNvidiaGpuAttributionDataPoint(now, oneIf(state == present), snapshot.Host,
				metadata.MapAttributeNvidiaGpuAttributionSource[string(source)],
				metadata.MapAttributeNvidiaGpuAttributionState[string(state)], labels...)
		}
	}
	if snapshot.KernelLog != "" {
		for _, state := range kernellog.States {
			metrics.RecordNvidiaGpuKernelLogStateDataPoint(now, oneIf(string(state) == snapshot.KernelLog), snapshot.Host,
				metadata.MapAttributeNvidiaGpuKernelLogState[string(state)])
		}
	}
	for _, of := range errors.of(ofSwitches) {
		metrics.RecordNvidiaNvswitchSxidErrorsDataPoint(now, of.value, snapshot.Host, of.address, of.code, of.fatal)
	}

	metrics.EmitForResource(metadata.WithResource(describeHost(metrics.NewResourceBuilder(), &snapshot.System)))
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
