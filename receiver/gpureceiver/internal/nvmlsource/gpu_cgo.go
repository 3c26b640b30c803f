//go:build cgo && linux

package nvmlsource

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// maxNUMANodes bounds the set of nodes that the driver returns.
	maxNUMANodes = 64
	// nearestNode selects the node itself and not its socket.
	nearestNode = 0
)

// boundGPU is a device handle of go-nvml.
type boundGPU struct {
	*binding
	device nvml.Device
	gpm    *gpmSamples
	// parent is the GPU that a MIG device is a part of, nil for a whole GPU.
	parent *boundGPU
	// gpuInstance is that of a MIG device.
	gpuInstance int
}

// bind returns a GPU for a handle.
func (b *binding) bind(handle nvml.Device) *boundGPU {
	g := &boundGPU{binding: b, device: handle, gpm: &gpmSamples{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gpm[g.gpm] = struct{}{}
	return g
}

// whole is the GPU itself, or the one that a MIG device is a part of.
func (g *boundGPU) whole() *boundGPU {
	if g.parent != nil {
		return g.parent
	}
	return g
}

// Release implements gpu.
func (g *boundGPU) Release() {
	g.mu.Lock()
	delete(g.binding.gpm, g.gpm)
	g.mu.Unlock()
	g.gpm.release()
}

// UUID implements gpu.
func (g *boundGPU) UUID() (string, status) {
	return guarded(g.binding, "nvmlDeviceGetUUID", g.device.GetUUID)
}

// Name implements gpu.
func (g *boundGPU) Name() (string, status) {
	return guarded(g.binding, "nvmlDeviceGetName", g.device.GetName)
}

// PCIBusID implements gpu.
func (g *boundGPU) PCIBusID() (string, status) {
	if !g.has("nvmlDeviceGetPciInfo_v3") && !g.has("nvmlDeviceGetPciInfo_v2") && !g.has("nvmlDeviceGetPciInfo") {
		return "", statusFunctionNotFound
	}
	info, ret := g.device.GetPciInfo()
	if ret != nvml.SUCCESS {
		return "", statusOf(ret)
	}
	// NVML's own text has eight digits of domain; sysfs has four.
	return fmt.Sprintf("%04x:%02x:%02x.0", info.Domain, info.Bus, info.Device), statusSuccess
}

// Serial implements gpu.
func (g *boundGPU) Serial() (string, status) {
	return guarded(g.binding, "nvmlDeviceGetSerial", g.device.GetSerial)
}

// VBIOS implements gpu.
func (g *boundGPU) VBIOS() (string, status) {
	return guarded(g.binding, "nvmlDeviceGetVbiosVersion", g.device.GetVbiosVersion)
}

// Architecture implements gpu.
func (g *boundGPU) Architecture() (string, status) {
	number, result := guarded(g.binding, "nvmlDeviceGetArchitecture", g.device.GetArchitecture)
	return architectureName(uint32(number)), result
}

// NUMANode implements gpu. NVML's call with that name is about GPUs that are NUMA
// nodes themselves.
func (g *boundGPU) NUMANode() (int, status) {
	set, result := guarded(g.binding, "nvmlDeviceGetMemoryAffinity", func() ([]uint, nvml.Return) {
		return g.device.GetMemoryAffinity(maxNUMANodes, nearestNode)
	})
	if result != statusSuccess {
		return 0, result
	}
	node, found := onlyNode(set)
	if !found {
		return 0, statusNotSupported
	}
	return node, statusSuccess
}

// MIGDevices implements gpu.
func (g *boundGPU) MIGDevices() (int, status) {
	if !g.has("nvmlDeviceGetMigMode") || !g.has("nvmlDeviceGetMaxMigDeviceCount") || !g.has("nvmlDeviceGetMigDeviceHandleByIndex") {
		return 0, statusFunctionNotFound
	}
	mode, _, ret := g.device.GetMigMode()
	if ret != nvml.SUCCESS {
		return 0, statusOf(ret)
	}
	if mode != nvml.DEVICE_MIG_ENABLE {
		return 0, statusSuccess
	}
	count, ret := g.device.GetMaxMigDeviceCount()
	return count, statusOf(ret)
}

// MIGDevice implements gpu.
func (g *boundGPU) MIGDevice(index int) (gpu, status) {
	for _, symbol := range []string{"nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId"} {
		if !g.has(symbol) {
			return nil, statusFunctionNotFound
		}
	}
	handle, ret := g.device.GetMigDeviceHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	instance, ret := handle.GetGpuInstanceId()
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	part := g.bind(handle)
	part.parent, part.gpuInstance = g, instance
	return part, statusSuccess
}

// Instances implements gpu.
func (g *boundGPU) Instances() (gpuInstance, computeInstance int, result status) {
	if g.parent == nil {
		return 0, 0, statusNotSupported
	}
	// MIGDevice has looked the symbol up.
	computeInstance, ret := g.device.GetComputeInstanceId()
	return g.gpuInstance, computeInstance, statusOf(ret)
}

// Size implements gpu.
func (g *boundGPU) Size() (migSize, status) {
	if !g.has("nvmlDeviceGetAttributes") && !g.has("nvmlDeviceGetAttributes_v2") || !g.has("nvmlDeviceGetMemoryInfo") {
		return migSize{}, statusFunctionNotFound
	}
	attributes, ret := g.device.GetAttributes()
	if ret != nvml.SUCCESS {
		return migSize{}, statusOf(ret)
	}
	whole, ret := g.whole().device.GetMemoryInfo()
	return migSize{
		gpuSlices: attributes.GpuInstanceSliceCount, computeSlices: attributes.ComputeInstanceSliceCount,
		memoryMiB: attributes.MemorySizeMB, totalBytes: whole.Total,
	}, statusOf(ret)
}

// Renew implements gpu.
func (g *boundGPU) Renew(with gpu) {
	if newer, ok := with.(*boundGPU); ok {
		g.device = newer.device
	}
}

// ComputeProcesses implements gpu.
func (g *boundGPU) ComputeProcesses() ([]process, status) {
	return g.processes("nvmlDeviceGetComputeRunningProcesses", g.device.GetComputeRunningProcesses)
}

// GraphicsProcesses implements gpu.
func (g *boundGPU) GraphicsProcesses() ([]process, status) {
	return g.processes("nvmlDeviceGetGraphicsRunningProcesses", g.device.GetGraphicsRunningProcesses)
}

// MPSProcesses implements gpu.
func (g *boundGPU) MPSProcesses() ([]process, status) {
	return g.processes("nvmlDeviceGetMPSComputeRunningProcesses", g.device.GetMPSComputeRunningProcesses)
}

// processes reads a list. The binding uses the newest version of the symbol.
func (g *boundGPU) processes(symbol string, list func() ([]nvml.ProcessInfo, nvml.Return)) ([]process, status) {
	if !g.has(symbol+"_v3") && !g.has(symbol+"_v2") && !g.has(symbol) {
		return nil, statusFunctionNotFound
	}
	infos, ret := list()
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	processes := make([]process, 0, len(infos))
	for _, info := range infos {
		processes = append(processes, process{pid: info.Pid, memory: info.UsedGpuMemory})
	}
	return processes, statusSuccess
}

// ProcessUtilization implements gpu. The driver returns "not found" if it has no
// samples, which means that every process was idle.
func (g *boundGPU) ProcessUtilization(since uint64) ([]processSample, status) {
	if !g.has("nvmlDeviceGetProcessUtilization") {
		return nil, statusFunctionNotFound
	}
	values, ret := g.device.GetProcessUtilization(since)
	if ret == nvml.ERROR_NOT_FOUND {
		return nil, statusSuccess
	}
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	samples := make([]processSample, 0, len(values))
	for _, value := range values {
		if value.TimeStamp <= since {
			// An unused entry of the buffer.
			continue
		}
		samples = append(samples, processSample{
			pid: value.Pid, time: value.TimeStamp,
			general: value.SmUtil, encoder: value.EncUtil, decoder: value.DecUtil,
		})
	}
	return samples, statusSuccess
}
