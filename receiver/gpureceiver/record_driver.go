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
	errors.ofSwitches(func(of switchSeries, value int64) {
		metrics.RecordNvidiaNvswitchSxidErrorsDataPoint(now, value, snapshot.Host, of.address, of.code, of.fatal)
	})

	metrics.EmitForResource(metadata.WithResource(describeHost(metrics.NewResourceBuilder(), snapshot)))
}

// recordIdentity makes the point of a GPU's identity.
func (p *points) recordIdentity(snapshot *device.Snapshot, gpu *device.Identity) {
	options := p.with()
	if gpu.Name != "" {
		options = append(options, metadata.WithHwNameMetricAttribute(gpu.Name))
	}
	if snapshot.DriverVersion != "" {
		options = append(options, metadata.WithHwDriverVersionMetricAttribute(snapshot.DriverVersion))
	}
	if gpu.PCIBusID != "" {
		options = append(options, metadata.WithNvidiaGpuPciBusIDMetricAttribute(gpu.PCIBusID))
	}
	if mig := gpu.MIG; mig != nil {
		options = append(options,
			metadata.WithNvidiaGpuMigGpuInstanceIDMetricAttribute(int64(mig.GPUInstance)),
			metadata.WithNvidiaGpuMigComputeInstanceIDMetricAttribute(int64(mig.ComputeInstance)))
		if mig.Profile != "" {
			options = append(options, metadata.WithNvidiaGpuMigProfileMetricAttribute(mig.Profile))
		}
	}
	p.RecordNvidiaGpuInfoDataPoint(p.now, 1, p.id, p.host, p.index, options...)
}
