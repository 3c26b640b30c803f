package gpureceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// sourceReplay is the value of nvidia.gpu.source on all recorded data.
const sourceReplay = "replay"

// driverMetrics are those about the host, the driver, and who the GPUs are.
func driverMetrics() []gpuMetric {
	return []gpuMetric{
		needs(declared.NvidiaGpuDriverState.Name),
		needs(declared.NvidiaGpuAttribution.Name, device.ProcessList),
		needs(declared.NvidiaGpuInfo.Name),
	}
}

// hostLabels returns what every point of a snapshot carries beside the
// metric's own attributes.
func hostLabels(snapshot *device.Snapshot) []metadata.MetricAttributeOption {
	if !snapshot.Replayed {
		return nil
	}
	return []metadata.MetricAttributeOption{metadata.WithNvidiaGpuSourceMetricAttribute(sourceReplay)}
}

// recordDriver emits what concerns all GPUs on a resource of the host's.
func (s *gpuScraper) recordDriver(now pcommon.Timestamp, snapshot *device.Snapshot) {
	labels := hostLabels(snapshot)
	for _, state := range device.DriverStates {
		s.metrics.RecordNvidiaGpuDriverStateDataPoint(now, oneIf(state == snapshot.Driver), snapshot.Host,
			metadata.MapAttributeNvidiaGpuDriverState[string(state)], labels...)
	}
	for _, way := range workload.Ways {
		now, present := now, snapshot.Attribution[way]
		if present == "" {
			continue
		}
		for _, state := range workload.WayStates {
			s.metrics.RecordNvidiaGpuAttributionDataPoint(now, oneIf(state == present), snapshot.Host,
				metadata.MapAttributeNvidiaGpuAttributionSource[string(way)],
				metadata.MapAttributeNvidiaGpuAttributionState[string(state)], labels...)
		}
	}

	resource := s.metrics.NewResourceBuilder()
	resource.SetHostName(snapshot.Host)
	describeDriver(resource, snapshot)
	s.metrics.EmitForResource(metadata.WithResource(resource.Emit()))
}

// describeDriver sets what every resource says about the driver.
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

// oneIf is the value of a point of a state.
func oneIf(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}
