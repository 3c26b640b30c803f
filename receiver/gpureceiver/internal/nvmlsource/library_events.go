//go:build cgo && linux

package nvmlsource

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// NewEventSet implements eventLibrary.
func (b *binding) NewEventSet() (eventSet, status) {
	for _, symbol := range []string{"nvmlEventSetCreate", "nvmlEventSetFree", "nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes"} {
		if !b.has(symbol) {
			return nil, statusFunctionNotFound
		}
	}
	if !b.has("nvmlEventSetWait_v2") && !b.has("nvmlEventSetWait") {
		return nil, statusFunctionNotFound
	}
	set, ret := b.nvml.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	return boundEventSet{set: set}, statusSuccess
}

// boundEventSet is an event set of go-nvml.
type boundEventSet struct {
	set nvml.EventSet
}

// Register implements eventSet. It checks first that the GPU supports XIDs,
// because registering unsupported events is an error.
func (b boundEventSet) Register(g gpu) status {
	bound, ok := g.(*boundGPU)
	if !ok {
		return statusNotSupported
	}
	types, ret := bound.device.GetSupportedEventTypes()
	if ret != nvml.SUCCESS {
		return statusOf(ret)
	}
	if types&nvml.EventTypeXidCriticalError == 0 {
		return statusNotSupported
	}
	return statusOf(bound.device.RegisterEvents(nvml.EventTypeXidCriticalError, b.set))
}

// Wait implements eventSet. The handle is only compared.
func (b boundEventSet) Wait(timeout time.Duration) (xid, status) {
	data, ret := b.set.Wait(uint32(timeout.Milliseconds()))
	if ret != nvml.SUCCESS {
		return xid{}, statusOf(ret)
	}
	if data.EventType&nvml.EventTypeXidCriticalError == 0 {
		// Only XIDs are registered.
		return xid{}, statusSuccess
	}
	return xid{
		from: func(g gpu) bool {
			bound, ok := g.(*boundGPU)
			return ok && bound.device == data.Device
		},
		code: data.EventData, gpuInstance: data.GpuInstanceId, computeInstance: data.ComputeInstanceId,
	}, statusSuccess
}

// Free implements eventSet.
func (b boundEventSet) Free() status {
	return statusOf(b.set.Free())
}

// Persistent implements persistentGPU.
func (g *boundGPU) Persistent() (bool, status) {
	mode, result := guarded(g.binding, "nvmlDeviceGetPersistenceMode", g.device.GetPersistenceMode)
	return mode == nvml.FEATURE_ENABLED, result
}
