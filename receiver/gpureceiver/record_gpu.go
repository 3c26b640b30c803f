package gpureceiver

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const vendor = "NVIDIA"

// hwTypeGPU is the value of hw.type.
const hwTypeGPU = metadata.AttributeHwTypeGpu

// points emits the points of one GPU at one moment. A reading that is
// unavailable leaves no point.
type points struct {
	*metadata.MetricsBuilder
	cfg   *Config
	now   pcommon.Timestamp
	id    string
	host  string
	index int64
	// labels are what every point carries beside the metric's own attributes.
	labels []metadata.MetricAttributeOption
}

// with returns the labels and some more.
func (p *points) with(more ...metadata.MetricAttributeOption) []metadata.MetricAttributeOption {
	return append(more, p.labels...)
}

// pointsOf returns what emits the points of a GPU or MIG device.
func (s *gpuScraper) pointsOf(now pcommon.Timestamp, snapshot *device.Snapshot, gpu *device.Identity) *points {
	p := &points{
		MetricsBuilder: s.metrics, cfg: s.cfg, now: now,
		id: gpu.ID, host: snapshot.Host, index: int64(gpu.Index),
		labels: hostLabels(snapshot),
	}
	if gpu.MIG != nil {
		p.labels = p.with(metadata.WithHwParentMetricAttribute(gpu.MIG.Parent))
	}
	return p
}

// recordGPU emits one GPU on a resource of its own.
func (s *gpuScraper) recordGPU(now pcommon.Timestamp, snapshot *device.Snapshot, gpu *device.GPU, known *member) {
	p := s.pointsOf(now, snapshot, &gpu.Identity)
	p.recordIdentity(snapshot, &gpu.Identity)
	readings := &gpu.Readings
	p.recordActivity(readings)
	p.recordMemory(&readings.Memory)
	p.recordPower(&readings.Power)
	p.recordThermal(&readings.Thermal)
	p.recordClocks(&readings.Clocks)
	p.recordPCIe(&readings.PCIe)
	p.recordNVLink(&readings.NVLink)
	p.recordErrors(readings)
	if gpu.MIG == nil {
		if snapshot.Driver == device.DriverOK {
			p.recordStatus(known.state)
		}
		p.recordXIDs(s.errors)
	}
	s.recordWorkloads(p, gpu)
	s.emit(snapshot, &gpu.Identity, known)
}

// recordVanished emits what can be said about a GPU that is not there.
func (s *gpuScraper) recordVanished(now pcommon.Timestamp, snapshot *device.Snapshot, known *member) {
	p := s.pointsOf(now, snapshot, &known.identity)
	p.recordIdentity(snapshot, &known.identity)
	p.recordStatus(health.Failed)
	p.recordXIDs(s.errors)
	s.emit(snapshot, &known.identity, known)
}

// emit ends the points of a GPU.
func (s *gpuScraper) emit(snapshot *device.Snapshot, gpu *device.Identity, known *member) {
	s.metrics.EmitForResource(metadata.WithResource(s.resource(snapshot, gpu, known)), metadata.WithStartTimeOverride(known.start))
}

// resource returns a GPU's resource, the same as long as nothing of it changes.
func (s *gpuScraper) resource(snapshot *device.Snapshot, gpu *device.Identity, known *member) pcommon.Resource {
	of := description{
		identity: *gpu, host: snapshot.Host, driver: snapshot.DriverVersion, cuda: snapshot.CUDAVersion,
		replayed: snapshot.Replayed,
	}
	if known.description != of {
		known.description, known.resource = of, describe(s.metrics.NewResourceBuilder(), snapshot, gpu)
	}
	return known.resource
}

// description is what a GPU's resource says.
type description struct {
	identity           device.Identity
	host, driver, cuda string
	replayed           bool
}

// describe returns a GPU's resource.
func describe(resource *metadata.ResourceBuilder, snapshot *device.Snapshot, gpu *device.Identity) pcommon.Resource {
	text := func(value string, set func(string)) {
		if value != "" {
			set(value)
		}
	}
	resource.SetHostName(snapshot.Host)
	resource.SetHwID(gpu.ID)
	resource.SetHwType(hwTypeGPU.String())
	resource.SetHwVendor(vendor)
	resource.SetNvidiaGpuIndex(int64(gpu.Index))
	text(gpu.Name, resource.SetHwName)
	text(model(gpu.Name), resource.SetHwModel)
	text(gpu.PCIBusID, resource.SetNvidiaGpuPciBusID)
	text(gpu.Serial, resource.SetHwSerialNumber)
	text(gpu.VBIOS, resource.SetHwFirmwareVersion)
	text(gpu.Architecture, resource.SetNvidiaGpuArchitecture)
	if gpu.NUMANode.Known {
		resource.SetNvidiaGpuNumaNode(int64(gpu.NUMANode.Value))
	}
	if mig := gpu.MIG; mig != nil {
		resource.SetHwParent(mig.Parent)
		text(mig.Profile, resource.SetNvidiaGpuMigProfile)
		resource.SetNvidiaGpuMigGpuInstanceID(int64(mig.GPUInstance))
		resource.SetNvidiaGpuMigComputeInstanceID(int64(mig.ComputeInstance))
	}
	describeDriver(resource, snapshot)
	return resource.Emit()
}

// model is the product's name without its vendor.
func model(name string) string {
	return strings.TrimPrefix(name, vendor+" ")
}

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

func (p *points) recordActivity(readings *device.Readings) {
	activities := &readings.Activity
	for _, engine := range []struct {
		activity *device.Activity
		task     metadata.AttributeHwGpuTask
	}{
		{&activities.General, metadata.AttributeHwGpuTaskGeneral},
		{&activities.Encoder, metadata.AttributeHwGpuTaskEncoder},
		{&activities.Decoder, metadata.AttributeHwGpuTaskDecoder},
		{&activities.JPEG, metadata.AttributeHwGpuTaskJpeg},
		{&activities.OFA, metadata.AttributeHwGpuTaskOfa},
	} {
		if !p.cfg.tells(engine.task.String()) {
			continue
		}
		if v := engine.activity.Utilization; v.Known {
			p.RecordHwGpuUtilizationDataPoint(p.now, v.Value, p.id, p.host, p.index, engine.task, p.labels...)
		}
		if v := engine.activity.Peak; v.Known {
			p.RecordNvidiaGpuUtilizationPeakDataPoint(p.now, v.Value, p.id, p.host, p.index, engine.task, p.labels...)
		}
		if v := engine.activity.BusySeconds; v.Known {
			p.RecordNvidiaGpuBusyTimeDataPoint(p.now, v.Value, p.id, p.host, p.index, engine.task, p.labels...)
		}
	}

	pipes := &readings.Pipes
	if pipes.SMUtilization.Known {
		p.RecordNvidiaGpuSmUtilizationDataPoint(p.now, pipes.SMUtilization.Value, p.id, p.host, p.index, p.labels...)
	}
	if pipes.SMOccupancy.Known {
		p.RecordNvidiaGpuSmOccupancyDataPoint(p.now, pipes.SMOccupancy.Value, p.id, p.host, p.index, p.labels...)
	}
	if pipes.DRAMUtilization.Known {
		p.RecordNvidiaGpuDramUtilizationDataPoint(p.now, pipes.DRAMUtilization.Value, p.id, p.host, p.index, p.labels...)
	}
	for _, name := range device.PipeNames {
		if value, known := pipes.Pipe[name]; known {
			p.RecordNvidiaGpuPipeUtilizationDataPoint(p.now, value, p.id, p.host, p.index,
				metadata.MapAttributeNvidiaGpuPipe[name], p.labels...)
		}
	}
}

func (p *points) recordMemory(m *device.Memory) {
	if m.Total.Known {
		p.RecordHwGpuMemoryLimitDataPoint(p.now, int64(m.Total.Value), p.id, p.host, p.index, p.labels...)
	}
	if m.Used.Known {
		p.RecordHwGpuMemoryUsageDataPoint(p.now, int64(m.Used.Value), p.id, p.host, p.index, p.labels...)
	}
	if m.Total.Known && m.Used.Known {
		p.RecordHwGpuMemoryUtilizationDataPoint(p.now, m.Used.Value/m.Total.Value, p.id, p.host, p.index, p.labels...)
	}
	if m.Reserved.Known {
		p.RecordNvidiaGpuMemoryReservedDataPoint(p.now, int64(m.Reserved.Value), p.id, p.host, p.index, p.labels...)
	}
	if m.BAR1Used.Known {
		p.RecordNvidiaGpuBar1UsageDataPoint(p.now, int64(m.BAR1Used.Value), p.id, p.host, p.index, p.labels...)
	}
	if m.ControllerUtilization.Known {
		p.RecordNvidiaGpuMemoryControllerUtilizationDataPoint(p.now, m.ControllerUtilization.Value, p.id, p.host, p.index, p.labels...)
	}
}

func (p *points) recordPower(power *device.Power) {
	if power.Draw.Known {
		p.RecordHwPowerDataPoint(p.now, power.Draw.Value, p.id, p.host, p.index, hwTypeGPU, p.labels...)
	}
	if power.Energy.Known {
		p.RecordHwEnergyDataPoint(p.now, power.Energy.Value, p.id, p.host, p.index, hwTypeGPU, p.labels...)
	}
	if power.Peak.Known {
		p.RecordNvidiaGpuPowerPeakDataPoint(p.now, power.Peak.Value, p.id, p.host, p.index, p.labels...)
	}
	if power.InstantGPU.Known {
		p.RecordNvidiaGpuPowerInstantDataPoint(p.now, power.InstantGPU.Value, p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuPowerScopeGpu, p.labels...)
	}
	if power.InstantModule.Known {
		p.RecordNvidiaGpuPowerInstantDataPoint(p.now, power.InstantModule.Value, p.id, p.host, p.index,
			metadata.AttributeNvidiaGpuPowerScopeModule, p.labels...)
	}
	for _, name := range p.cfg.PowerLimits {
		if value, known := power.Limits[name]; known {
			p.RecordNvidiaGpuPowerLimitDataPoint(p.now, value, p.id, p.host, p.index,
				metadata.MapAttributeNvidiaGpuPowerLimitType[name], p.labels...)
		}
	}
}

func (p *points) recordThermal(t *device.Thermal) {
	for _, sensor := range []struct {
		reading  device.Number
		location metadata.AttributeHwSensorLocation
	}{
		{t.GPU, metadata.AttributeHwSensorLocationGpu},
		{t.Memory, metadata.AttributeHwSensorLocationMemory},
	} {
		if sensor.reading.Known {
			p.RecordHwTemperatureDataPoint(p.now, sensor.reading.Value, p.id, p.host, p.index, hwTypeGPU, sensor.location, p.labels...)
		}
	}
	for _, limit := range []struct {
		reading device.Number
		kind    metadata.AttributeHwLimitType
	}{
		{t.Slowdown, metadata.AttributeHwLimitTypeHighDegraded},
		{t.Shutdown, metadata.AttributeHwLimitTypeHighCritical},
	} {
		if limit.reading.Known {
			p.RecordHwTemperatureLimitDataPoint(p.now, limit.reading.Value, p.id, p.host, p.index,
				hwTypeGPU, metadata.AttributeHwSensorLocationGpu, limit.kind, p.labels...)
		}
	}
	for i, fan := range t.Fans {
		if fan.Known {
			p.RecordHwFanSpeedRatioDataPoint(p.now, fan.Value, p.id, p.host, p.index, "fan"+strconv.Itoa(i), p.labels...)
		}
	}
}

func (p *points) recordClocks(c *device.Clocks) {
	for _, name := range device.ClockNames {
		domain := metadata.MapAttributeNvidiaGpuClockDomain[name]
		if value, known := c.Frequencies[name]; known {
			p.RecordNvidiaGpuClockFrequencyDataPoint(p.now, value, p.id, p.host, p.index, domain, p.labels...)
		}
		if value, known := c.Limits[name]; known {
			p.RecordNvidiaGpuClockLimitDataPoint(p.now, value, p.id, p.host, p.index, domain, p.labels...)
		}
	}
	for _, name := range device.ThrottleReasons {
		reason := metadata.MapAttributeNvidiaGpuThrottleReason[name]
		if value, known := c.Throttle[name]; known {
			p.RecordNvidiaGpuThrottleActiveDataPoint(p.now, int64(value), p.id, p.host, p.index, reason, p.labels...)
		}
		if value, known := c.ThrottleSeconds[name]; known {
			p.RecordNvidiaGpuThrottleTimeDataPoint(p.now, value, p.id, p.host, p.index, reason, p.labels...)
		}
	}
	if c.PerformanceState.Known {
		p.RecordNvidiaGpuPerformanceStateDataPoint(p.now, int64(c.PerformanceState.Value), p.id, p.host, p.index, p.labels...)
	}
}
