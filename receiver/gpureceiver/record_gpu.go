package gpureceiver

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const vendor = "NVIDIA"

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

// pointsOf returns the points of a GPU or MIG device.
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

// recordGPU emits the metrics of one GPU on its resource.
func (s *gpuScraper) recordGPU(now pcommon.Timestamp, snapshot *device.Snapshot, gpu *device.GPU, known *trackedGPU) {
	p := s.pointsOf(now, snapshot, &gpu.Identity)
	p.recordIdentity(snapshot, &gpu.Identity)
	for i := range s.recorded {
		s.recorded[i].record(p, &gpu.Readings)
	}
	if gpu.MIG == nil {
		if snapshot.Driver == device.DriverOK {
			p.recordStatus(known.state)
		}
		p.recordXIDs(s.errors)
	}
	s.recordWorkloads(p, gpu)
	s.emit(snapshot, &gpu.Identity, known)
}

// recordVanished emits the identity, status and error counts of a GPU that is
// missing.
func (s *gpuScraper) recordVanished(now pcommon.Timestamp, snapshot *device.Snapshot, known *trackedGPU) {
	p := s.pointsOf(now, snapshot, &known.identity)
	p.recordIdentity(snapshot, &known.identity)
	p.recordStatus(health.Failed)
	p.recordXIDs(s.errors)
	s.emit(snapshot, &known.identity, known)
}

// emit ends the points of a GPU.
func (s *gpuScraper) emit(snapshot *device.Snapshot, gpu *device.Identity, known *trackedGPU) {
	s.metrics.EmitForResource(metadata.WithResource(s.resource(snapshot, gpu, known)), metadata.WithStartTimeOverride(known.start))
}

// resource returns a GPU's resource, which is built again only if it changes.
func (s *gpuScraper) resource(snapshot *device.Snapshot, gpu *device.Identity, known *trackedGPU) pcommon.Resource {
	of := description{
		identity: *gpu, host: snapshot.Host, driver: snapshot.DriverVersion, cuda: snapshot.CUDAVersion,
		replayed: snapshot.Replayed,
	}
	if known.description != of {
		known.description, known.resource = of, describe(s.metrics.NewResourceBuilder(), snapshot, gpu)
	}
	return known.resource
}

// description is what a GPU's resource is built from.
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
