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
func (g *gpu) errorCalls(fields *fieldBatch) []call {
	calls := []call{
		number("ecc", device.ECCCorrected, g.totalErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED)),
		number("ecc", device.ECCUncorrected, g.totalErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)),
		{name: "remapped_rows", read: g.remappedRows, yields: []*device.Quantity{
			device.RemappedCorrectable, device.RemappedUncorrectable, device.RemapPending, device.RemapFailed,
		}},
		part("retired_pages", device.RetiredSingleBit, fields.field(nvml.FI_DEV_RETIRED_SBE, 0, 1)),
		part("retired_pages", device.RetiredDoubleBit, fields.field(nvml.FI_DEV_RETIRED_DBE, 0, 1)),
		part("recovery_action", device.RecoveryAction, fields.field(nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 0, 1)),
	}
	for _, name := range device.LifetimeCorrected.Names {
		location := memoryLocations[name]
		calls = append(calls,
			number("ecc_lifetime", device.LifetimeCorrected.Member(name), g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, location)),
			number("ecc_lifetime", device.LifetimeUncorrected.Member(name), g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, location)))
	}
	return calls
}

func (g *gpu) totalErrors(kind nvml.MemoryErrorType) func() (float64, status) {
	return whole(g, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return g.device.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	}, 1)
}

func (g *gpu) lifetimeErrors(kind nvml.MemoryErrorType, location nvml.MemoryLocation) func() (float64, status) {
	return whole(g, "nvmlDeviceGetMemoryErrorCounter", func() (uint64, nvml.Return) {
		count, ret := g.device.GetMemoryErrorCounter(kind, nvml.AGGREGATE_ECC, location)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			// A driver returns this for a location that is newer than itself.
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		return count, ret
	}, 1)
}

func (g *gpu) remappedRows(read *values) status {
	if !g.has("nvmlDeviceGetRemappedRows") {
		return statusFunctionNotFound
	}
	correctable, uncorrectable, pending, failed, ret := g.device.GetRemappedRows()
	read.add(device.RemappedCorrectable, float64(correctable))
	read.add(device.RemappedUncorrectable, float64(uncorrectable))
	read.add(device.RemapPending, flag(pending))
	read.add(device.RemapFailed, flag(failed))
	return statusOf(ret)
}

// flag is 1 for true and 0 for false.
func flag(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
