package gpureceiver

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

const vendor = "NVIDIA"

// description is what a GPU's resource is built from.
type description struct {
	system   device.System
	identity device.Identity
}

// describe returns a GPU's resource.
func describe(resource *metadata.ResourceBuilder, system *device.System, gpu *device.Identity) pcommon.Resource {
	text := func(value string, set func(string)) {
		if value != "" {
			set(value)
		}
	}
	resource.SetHostName(system.Host)
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
	describeDriver(resource, system)
	return resource.Emit()
}

// model is the product's name without its vendor.
func model(name string) string {
	return strings.TrimPrefix(name, vendor+" ")
}

// describeHost returns the resource of what concerns no GPU.
func describeHost(resource *metadata.ResourceBuilder, system *device.System) pcommon.Resource {
	resource.SetHostName(system.Host)
	describeDriver(resource, system)
	return resource.Emit()
}

// describeDriver sets the attributes about the driver, which every resource
// has.
func describeDriver(resource *metadata.ResourceBuilder, system *device.System) {
	if system.DriverVersion != "" {
		resource.SetHwDriverVersion(system.DriverVersion)
	}
	if system.CUDAVersion != "" {
		resource.SetNvidiaCudaVersion(system.CUDAVersion)
	}
	if system.Replayed {
		resource.SetNvidiaGpuSource(sourceReplay)
	}
}
