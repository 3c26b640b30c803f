package gpureceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// sourceReplay is the value of nvidia.gpu.source on all recorded data.
const sourceReplay = "replay"

// driverMetrics are those about the driver and the GPUs' identity.
func driverMetrics() []gpuMetric {
	return []gpuMetric{
		needs(declared.NvidiaGpuDriverState.Name),
		needs(declared.NvidiaGpuAttribution.Name, device.ProcessList),
		needs(declared.NvidiaGpuInfo.Name),
	}
}

// hostLabels returns the attributes of every point of a snapshot beside the
// metric's own.
func hostLabels(snapshot *device.Snapshot) []metadata.MetricAttributeOption {
	if !snapshot.Replayed {
		return nil
	}
	return []metadata.MetricAttributeOption{metadata.WithNvidiaGpuSourceMetricAttribute(sourceReplay)}
}

// recordDriver emits the metrics about all GPUs on a resource of the host.
func (s *gpuScraper) recordDriver(now pcommon.Timestamp, snapshot *device.Snapshot) {
	labels := hostLabels(snapshot)
	for _, state := range device.DriverStates {
		s.metrics.RecordNvidiaGpuDriverStateDataPoint(now, oneIf(state == snapshot.Driver), snapshot.Host,
			metadata.MapAttributeNvidiaGpuDriverState[string(state)], labels...)
	}
	for _, source := range workload.Sources {
		present := snapshot.Attribution[source]
		if present == "" {
			continue
		}
		for _, state := range workload.SourceStates {
			s.metrics.RecordNvidiaGpuAttributionDataPoint(now, oneIf(state == present), snapshot.Host,
				metadata.MapAttributeNvidiaGpuAttributionSource[string(source)],
				metadata.MapAttributeNvidiaGpuAttributionState[string(state)], labels...)
		}
	}

	resource := s.metrics.NewResourceBuilder()
	resource.SetHostName(snapshot.Host)
	describeDriver(resource, snapshot)
	s.metrics.EmitForResource(metadata.WithResource(resource.Emit()))
}

// describeDriver sets the attributes about the driver, which every resource
// has.
func describeDriver(resource *metadata.ResourceBuilder, snapshot *device.Snapshot) {
	if snapshot.DriverVersion != "" {
		resource.SetHwDriverVersion(snapshot.DriverVersion)
	}
	if snapshot.CUDAVersion != "" {
		resource.SetNvidiaCudaVersion(snapshot.CUDAVersion)
	}
	if snapshot.Replayed {
		resource.SetNvidiaGpuSource(sourceReplay)
	}
}

// oneIf returns 1 for true and 0 for false.
func oneIf(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}
