//go:build cgo && linux

package nvmlsource

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// maxNUMANodes bounds the set of nodes that the driver returns.
	maxNUMANodes = 64
	// nearestNode selects the node itself and not its socket.
	nearestNode = 0
)

// gpu is one GPU or MIG device of the library.
type gpu struct {
	*library
	device nvml.Device
	gpm    *gpmSamples
	// parent is the GPU that a MIG device is a part of, nil for a whole GPU.
	parent *gpu
	// gpuInstance is that of a MIG device.
	gpuInstance int
}

// gpu returns the GPU with an index. The symbol was looked up by open.
func (l *library) gpu(index int) (*gpu, status) {
	handle, ret := l.nvml.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	return l.bind(handle), statusSuccess
}

// bind returns a GPU for a handle.
func (l *library) bind(handle nvml.Device) *gpu {
	g := &gpu{library: l, device: handle, gpm: &gpmSamples{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gpm[g.gpm] = struct{}{}
	return g
}

// whole is the GPU itself, or the one that a MIG device is a part of.
func (g *gpu) whole() *gpu {
	if g.parent != nil {
		return g.parent
	}
	return g
}

// release frees what the GPU holds in the library, for a GPU that is gone while
// others are not.
func (g *gpu) release() {
	g.mu.Lock()
	delete(g.library.gpm, g.gpm)
	g.mu.Unlock()
	g.gpm.release()
}

// busID returns the PCI address as sysfs writes it: with four digits of domain, where
// NVML's own text has eight.
func (g *gpu) busID() (string, status) {
	if !g.has("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo") {
		return "", statusFunctionNotFound
	}
	info, ret := g.device.GetPciInfo()
	return fmt.Sprintf("%04x:%02x:%02x.0", info.Domain, info.Bus, info.Device), statusOf(ret)
}

// architectures are the names of GPU architectures by NVML's numbers.
var architectures = map[nvml.DeviceArchitecture]string{
	2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing",
	7: "ampere", 8: "ada", 9: "hopper", 10: "blackwell", 13: "rubin",
}

// architecture is empty for one that is younger than this package.
func (g *gpu) architecture() (string, status) {
	number, result := guarded(g.library, "nvmlDeviceGetArchitecture", g.device.GetArchitecture)
	return architectures[number], result
}

// numaNode returns the node of the host memory next to the GPU. NVML's call with that
// name is about GPUs that are NUMA nodes themselves.
func (g *gpu) numaNode() (int, status) {
	set, result := guarded(g.library, "nvmlDeviceGetMemoryAffinity", func() ([]uint, nvml.Return) {
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

// onlyNode returns the number of the only bit that is set in a set of NUMA
// nodes. It reports false where there is none or more than one.
func onlyNode(set []uint) (int, bool) {
	node, found := 0, false
	for i, word := range set {
		if word == 0 {
			continue
		}
		if found || bits.OnesCount(word) != 1 {
			return 0, false
		}
		node, found = i*bits.UintSize+bits.TrailingZeros(word), true
	}
	return node, found
}

// migDevices is the number of MIG devices that a GPU can have, 0 while it is not in
// MIG mode. A GPU without that mode is unsupported.
func (g *gpu) migDevices() (int, status) {
	if !g.hasAll("nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex") {
		return 0, statusFunctionNotFound
	}
	mode, _, ret := g.device.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return 0, statusOf(ret)
	}
	count, ret := g.device.GetMaxMigDeviceCount()
	return count, statusOf(ret)
}

// migDevice returns the MIG device with an index; there are gaps.
func (g *gpu) migDevice(index int) (*gpu, status) {
	if !g.hasAll("nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId") {
		return nil, statusFunctionNotFound
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

// computeInstance is that of a MIG device. migDevice has looked the symbol up.
func (g *gpu) computeInstance() (int, status) {
	id, ret := g.device.GetComputeInstanceId()
	return id, statusOf(ret)
}

// size is that of a MIG device.
func (g *gpu) size() (migSize, status) {
	if !g.has("nvmlDeviceGetAttributes", "nvmlDeviceGetAttributes_v2") || !g.has("nvmlDeviceGetMemoryInfo") {
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

// processLists are the calls for the processes that hold a context of each of
// device.ProcessTypes. They take milliseconds. The binding uses the newest version of
// the symbol.
func (g *gpu) processLists() []func() ([]nvml.ProcessInfo, status) {
	list := func(symbol string, get func() ([]nvml.ProcessInfo, nvml.Return)) func() ([]nvml.ProcessInfo, status) {
		return func() ([]nvml.ProcessInfo, status) {
			if !g.has(symbol+"_v3", symbol+"_v2", symbol) {
				return nil, statusFunctionNotFound
			}
			processes, ret := get()
			return processes, statusOf(ret)
		}
	}
	return []func() ([]nvml.ProcessInfo, status){
		list("nvmlDeviceGetComputeRunningProcesses", g.device.GetComputeRunningProcesses),
		list("nvmlDeviceGetGraphicsRunningProcesses", g.device.GetGraphicsRunningProcesses),
		list("nvmlDeviceGetMPSComputeRunningProcesses", g.device.GetMPSComputeRunningProcesses),
	}
}

// processUtilization returns the driver's samples of processes after a time in its own
// microseconds, 0 for all samples that it still has. No samples mean that every process
// was idle.
func (g *gpu) processUtilization(since uint64) ([]nvml.ProcessUtilizationSample, status) {
	samples, result := guarded(g.library, "nvmlDeviceGetProcessUtilization", func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return g.device.GetProcessUtilization(since)
	})
	if result == statusNotFound || result == statusInsufficientSize {
		// The driver and the binding return these if there are no samples.
		return nil, statusSuccess
	}
	return slices.DeleteFunc(samples, func(s nvml.ProcessUtilizationSample) bool {
		// An unused entry of the buffer.
		return s.TimeStamp <= since
	}), result
}

// persistent reports whether the driver keeps the GPU initialised while no process
// uses it.
func (g *gpu) persistent() (bool, status) {
	mode, result := guarded(g.library, "nvmlDeviceGetPersistenceMode", g.device.GetPersistenceMode)
	return mode == nvml.FEATURE_ENABLED, result
}
