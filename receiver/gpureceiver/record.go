package gpureceiver

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

const (
	vendor = "NVIDIA"
	// sourceReplay is the value of nvidia.gpu.source on all recorded data.
	sourceReplay = "replay"
)

// labels returns what every point of a snapshot carries beside the metric's
// own attributes.
func labels(snapshot *device.Snapshot) []metadata.MetricAttributeOption {
	if !snapshot.Replayed {
		return nil
	}
	return []metadata.MetricAttributeOption{metadata.WithNvidiaGpuSourceMetricAttribute(sourceReplay)}
}

// recordDriver emits the driver's state on a resource of the host's.
func (s *gpuScraper) recordDriver(now pcommon.Timestamp, snapshot *device.Snapshot) {
	options := labels(snapshot)
	for _, state := range device.DriverStates {
		value := int64(0)
		if state == snapshot.Driver {
			value = 1
		}
		s.metrics.RecordNvidiaGpuDriverStateDataPoint(now, value, snapshot.Host,
			metadata.MapAttributeNvidiaGpuDriverState[string(state)], options...)
	}
	resource := s.metrics.NewResourceBuilder()
	resource.SetHostName(snapshot.Host)
	if snapshot.DriverVersion != "" {
		resource.SetHwDriverVersion(snapshot.DriverVersion)
	}
	if snapshot.Replayed {
		resource.SetNvidiaGpuSource(sourceReplay)
	}
	s.metrics.EmitForResource(metadata.WithResource(resource.Emit()))
}

// recordGPU emits one GPU's readings on a resource of its own. Readings that
// are unavailable leave no point.
func (s *gpuScraper) recordGPU(now pcommon.Timestamp, snapshot *device.Snapshot, gpu *device.GPU) {
	gpu.DropImplausible(s.dropped)
	m, id, host, index := s.metrics, gpu.ID, snapshot.Host, int64(gpu.Index)
	options := labels(snapshot)

	m.RecordNvidiaGpuInfoDataPoint(now, 1, id, host, index, append(identityAttributes(snapshot, gpu), options...)...)
	for _, task := range []struct {
		reading device.Reading[float64]
		task    metadata.AttributeHwGpuTask
	}{
		{gpu.Utilization, metadata.AttributeHwGpuTaskGeneral},
		{gpu.EncoderUtilization, metadata.AttributeHwGpuTaskEncoder},
		{gpu.DecoderUtilization, metadata.AttributeHwGpuTaskDecoder},
	} {
		if task.reading.Known {
			m.RecordHwGpuUtilizationDataPoint(now, task.reading.Value, id, host, index, task.task, options...)
		}
	}
	if gpu.MemoryTotal.Known {
		m.RecordHwGpuMemoryLimitDataPoint(now, int64(gpu.MemoryTotal.Value), id, host, index, options...)
	}
	if gpu.MemoryUsed.Known {
		m.RecordHwGpuMemoryUsageDataPoint(now, int64(gpu.MemoryUsed.Value), id, host, index, options...)
	}
	if gpu.MemoryTotal.Known && gpu.MemoryUsed.Known {
		m.RecordHwGpuMemoryUtilizationDataPoint(now, float64(gpu.MemoryUsed.Value)/float64(gpu.MemoryTotal.Value), id, host, index, options...)
	}
	if gpu.Power.Known {
		m.RecordHwPowerDataPoint(now, gpu.Power.Value, id, host, index, metadata.AttributeHwTypeGpu, options...)
	}
	counter := s.counters.of(id, now)
	if gpu.Energy.Known {
		m.RecordHwEnergyDataPoint(now, counter.energy.add(gpu.Energy.Value), id, host, index, metadata.AttributeHwTypeGpu, options...)
	}
	if gpu.Temperature.Known {
		m.RecordHwTemperatureDataPoint(now, gpu.Temperature.Value, id, host, index,
			metadata.AttributeHwTypeGpu, metadata.AttributeHwSensorLocationGpu, options...)
	}
	if gpu.MemoryTemperature.Known {
		m.RecordHwTemperatureDataPoint(now, gpu.MemoryTemperature.Value, id, host, index,
			metadata.AttributeHwTypeGpu, metadata.AttributeHwSensorLocationMemory, options...)
	}
	s.recordWorkloads(now, snapshot, gpu, options)

	resource := m.NewResourceBuilder()
	resource.SetHostName(host)
	resource.SetHwID(id)
	resource.SetHwType(metadata.AttributeHwTypeGpu.String())
	resource.SetHwVendor(vendor)
	resource.SetNvidiaGpuIndex(index)
	if gpu.Name != "" {
		resource.SetHwName(gpu.Name)
		resource.SetHwModel(model(gpu.Name))
	}
	if snapshot.DriverVersion != "" {
		resource.SetHwDriverVersion(snapshot.DriverVersion)
	}
	if gpu.PCIBusID != "" {
		resource.SetNvidiaGpuPciBusID(gpu.PCIBusID)
	}
	if snapshot.Replayed {
		resource.SetNvidiaGpuSource(sourceReplay)
	}
	m.EmitForResource(metadata.WithResource(resource.Emit()), metadata.WithStartTimeOverride(counter.start))
}

// recordWorkloads emits the memory of the GPU's processes by workload.
func (s *gpuScraper) recordWorkloads(now pcommon.Timestamp, snapshot *device.Snapshot, gpu *device.GPU, options []metadata.MetricAttributeOption) {
	s.groups.Reset()
	for _, process := range gpu.Processes {
		s.groups.Add(process.Workload, process.Memory)
	}
	for _, usage := range s.groups.Usages() {
		s.metrics.RecordNvidiaGpuWorkloadMemoryUsageDataPoint(now, int64(usage.Memory), gpu.ID, snapshot.Host, int64(gpu.Index),
			append(workloadAttributes(usage.Workload), options...)...)
	}
	if merged := s.groups.Merged(); merged > 0 {
		s.telemetry.ReceiverGpuMergedWorkloads.Add(context.Background(), int64(merged), metric.WithAttributes(s.id()))
	}
}

// identityAttributes returns what is known about who a GPU is, beyond what
// every point of it carries.
func identityAttributes(snapshot *device.Snapshot, gpu *device.GPU) []metadata.MetricAttributeOption {
	var options []metadata.MetricAttributeOption
	if gpu.Name != "" {
		options = append(options, metadata.WithHwNameMetricAttribute(gpu.Name))
	}
	if snapshot.DriverVersion != "" {
		options = append(options, metadata.WithHwDriverVersionMetricAttribute(snapshot.DriverVersion))
	}
	if gpu.PCIBusID != "" {
		options = append(options, metadata.WithNvidiaGpuPciBusIDMetricAttribute(gpu.PCIBusID))
	}
	return options
}

// workloadAttributes returns the attributes that are known of a workload.
func workloadAttributes(w workload.Workload) []metadata.MetricAttributeOption {
	var options []metadata.MetricAttributeOption
	text := func(value string, attribute func(string) metadata.MetricAttributeOption) {
		if value != "" {
			options = append(options, attribute(value))
		}
	}
	number := func(value workload.Number, attribute func(int64) metadata.MetricAttributeOption) {
		if value.Known {
			options = append(options, attribute(value.Value))
		}
	}
	text(w.RunID, metadata.WithMlRunIDMetricAttribute)
	number(w.RunAttempt, metadata.WithMlRunAttemptMetricAttribute)
	number(w.RankGlobal, metadata.WithMlRankGlobalMetricAttribute)
	number(w.RankLocal, metadata.WithMlRankLocalMetricAttribute)
	number(w.WorldSize, metadata.WithMlWorldSizeMetricAttribute)
	text(w.SlurmJobID, metadata.WithSlurmJobIDMetricAttribute)
	text(w.ContainerID, metadata.WithContainerIDMetricAttribute)
	text(w.PodUID, metadata.WithK8sPodUIDMetricAttribute)
	text(w.ServiceName, metadata.WithServiceNameMetricAttribute)
	text(w.UserID, metadata.WithUserIDMetricAttribute)
	return options
}

// model is the product's name without its vendor.
func model(name string) string {
	return strings.TrimPrefix(name, vendor+" ")
}
