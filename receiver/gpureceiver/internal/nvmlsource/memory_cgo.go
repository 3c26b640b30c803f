//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// memoryCalls are the calls about memory.
func (g *boundGPU) memoryCalls() []call {
	return []call{
		g.memoryCall(),
		number("bar1_memory", device.BAR1Used, whole(g, "nvmlDeviceGetBAR1MemoryInfo", func() (uint64, nvml.Return) {
			info, ret := g.device.GetBAR1MemoryInfo()
			return info.Bar1Used, ret
		}, 1)),
	}
}

func (g *boundGPU) memoryCall() call {
	return call{
		name: "memory", read: g.memory,
		yields: []*device.Quantity{device.MemoryTotal, device.MemoryUsed, device.MemoryReserved},
	}
}

// memory prefers the call that does not count what the driver reserves for
// itself as used.
func (g *boundGPU) memory() (func(*device.Readings), status) {
	if g.has("nvmlDeviceGetMemoryInfo_v2") {
		info, ret := g.device.GetMemoryInfo_v2()
		if ret == nvml.SUCCESS {
			return func(r *device.Readings) {
				r.Memory.Total = device.Read(float64(info.Total))
				r.Memory.Used = device.Read(float64(info.Used))
				r.Memory.Reserved = device.Read(float64(info.Reserved))
			}, statusSuccess
		}
		if ret == nvml.ERROR_GPU_IS_LOST {
			return nil, statusGPUIsLost
		}
	}
	if !g.has("nvmlDeviceGetMemoryInfo") {
		return nil, statusFunctionNotFound
	}
	info, ret := g.device.GetMemoryInfo()
	return func(r *device.Readings) {
		r.Memory.Total = device.Read(float64(info.Total))
		r.Memory.Used = device.Read(float64(info.Used))
	}, statusOf(ret)
}
