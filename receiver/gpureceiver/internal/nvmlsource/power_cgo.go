//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// highestMilliwatts is above what any board can draw.
const highestMilliwatts = 10_000_000

// powerCalls are the calls about power and energy. NVML gives milliwatts and
// millijoules.
func (g *gpu) powerCalls(id string, fields *fieldBatch) []call {
	constraint := func(pick func(low, high uint32) uint32) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) {
			low, high, ret := g.device.GetPowerManagementLimitConstraints()
			return pick(low, high), ret
		}
	}
	limit := func(kind, symbol string, get func() (uint32, nvml.Return)) call {
		return number("power_limit_"+kind, device.PowerLimits.Member(kind), whole(g, symbol, get, milli))
	}
	return []call{
		number("power", device.PowerDraw, whole(g, "nvmlDeviceGetPowerUsage", g.device.GetPowerUsage, milli)),
		g.powerPeak(id),
		number("energy", device.Energy, whole(g, "nvmlDeviceGetTotalEnergyConsumption", g.device.GetTotalEnergyConsumption, milli)),
		limit("enforced", "nvmlDeviceGetEnforcedPowerLimit", g.device.GetEnforcedPowerLimit),
		limit("requested", "nvmlDeviceGetPowerManagementLimit", g.device.GetPowerManagementLimit),
		limit("default", "nvmlDeviceGetPowerManagementDefaultLimit", g.device.GetPowerManagementDefaultLimit),
		limit("min", "nvmlDeviceGetPowerManagementLimitConstraints", constraint(func(low, _ uint32) uint32 { return low })),
		limit("max", "nvmlDeviceGetPowerManagementLimitConstraints", constraint(func(_, high uint32) uint32 { return high })),
		part("power_instant", device.PowerInstantGPU, fields.field(nvml.FI_DEV_POWER_INSTANT, 0, milli)),
		part("power_instant", device.PowerInstantModule, fields.field(nvml.FI_DEV_POWER_INSTANT, moduleScope, milli)),
	}
}

// powerPeak is the call for the highest of the driver's samples. Without new
// ones there is no peak.
func (g *gpu) powerPeak(id string) call {
	buffer := g.buffer(id, nvml.TOTAL_POWER_SAMPLES)
	return call{name: "power_samples", yields: []*device.Quantity{device.PowerPeak}, read: func(read *values) status {
		summary, found, result := g.samples(buffer, highestMilliwatts)
		if found {
			read.add(device.PowerPeak, summary.peak*milli)
		}
		return result
	}}
}
