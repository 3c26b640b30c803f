//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// memoryLocations are the places of memory errors by the names of
// device.LifetimeCorrected.
var memoryLocations = map[string]nvml.MemoryLocation{
	"device_memory": nvml.MEMORY_LOCATION_DEVICE_MEMORY, "l1_cache": nvml.MEMORY_LOCATION_L1_CACHE,
	"l2_cache": nvml.MEMORY_LOCATION_L2_CACHE, "register_file": nvml.MEMORY_LOCATION_REGISTER_FILE,
	"texture_memory": nvml.MEMORY_LOCATION_TEXTURE_MEMORY, "texture_shm": nvml.MEMORY_LOCATION_TEXTURE_SHM,
	"cbu": nvml.MEMORY_LOCATION_CBU, "sram": nvml.MEMORY_LOCATION_SRAM,
}

// errorCalls are the calls about memory errors and their repair.
func (g *boundGPU) errorCalls(fields *fieldBatch) []call {
	calls := []call{
		number("ecc", device.ECCCorrected, g.totalErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED)),
		number("ecc", device.ECCUncorrected, g.totalErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)),
		{name: "remapped_rows", read: g.remappedRows, yields: []*device.Quantity{
			device.RemappedCorrectable, device.RemappedUncorrectable, device.RemapPending, device.RemapFailed,
		}},
		part("retired_pages", device.RetiredSingleBit, fields.field(fieldRetiredSingleBit, 0, 1)),
		part("retired_pages", device.RetiredDoubleBit, fields.field(fieldRetiredDoubleBit, 0, 1)),
		part("recovery_action", device.RecoveryAction, fields.field(fieldRecoveryAction, 0, 1)),
	}
	for _, name := range device.LifetimeCorrected.Names {
		location := memoryLocations[name]
		calls = append(calls,
			number("ecc_lifetime", device.LifetimeCorrected.Member(name), g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, location)),
			number("ecc_lifetime", device.LifetimeUncorrected.Member(name), g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, location)))
	}
	return calls
}

func (g *boundGPU) totalErrors(kind nvml.MemoryErrorType) func() (float64, status) {
	return whole(g, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return g.device.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	}, 1)
}

func (g *boundGPU) lifetimeErrors(kind nvml.MemoryErrorType, location nvml.MemoryLocation) func() (float64, status) {
	return whole(g, "nvmlDeviceGetMemoryErrorCounter", func() (uint64, nvml.Return) {
		count, ret := g.device.GetMemoryErrorCounter(kind, nvml.AGGREGATE_ECC, location)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			// A driver returns this for a location that is newer than itself.
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		return count, ret
	}, 1)
}

func (g *boundGPU) remappedRows() (func(*device.Readings), status) {
	if !g.has("nvmlDeviceGetRemappedRows") {
		return nil, statusFunctionNotFound
	}
	correctable, uncorrectable, pending, failed, ret := g.device.GetRemappedRows()
	return func(r *device.Readings) {
		r.Repair.RemappedCorrectable = device.Read(float64(correctable))
		r.Repair.RemappedUncorrectable = device.Read(float64(uncorrectable))
		r.Repair.RemapPending, r.Repair.RemapFailed = device.Read(pending), device.Read(failed)
	}, statusOf(ret)
}
