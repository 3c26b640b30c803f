//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// clockDomains are the domains by the names of device.ClockFrequencies.
var clockDomains = map[string]nvml.ClockType{
	"graphics": nvml.CLOCK_GRAPHICS, "sm": nvml.CLOCK_SM, "memory": nvml.CLOCK_MEM, "video": nvml.CLOCK_VIDEO,
}

// throttleBits are the bits of NVML's reasons for low clocks, by the names of
// device.ThrottleReasons.
var throttleBits = map[string]uint64{
	"applications_clocks":     nvml.ClocksEventReasonApplicationsClocksSetting,
	"sw_power_cap":            nvml.ClocksEventReasonSwPowerCap,
	"hw_slowdown":             nvml.ClocksThrottleReasonHwSlowdown,
	"sync_boost":              nvml.ClocksEventReasonSyncBoost,
	"sw_thermal_slowdown":     nvml.ClocksEventReasonSwThermalSlowdown,
	"hw_thermal_slowdown":     nvml.ClocksThrottleReasonHwThermalSlowdown,
	"hw_power_brake_slowdown": nvml.ClocksThrottleReasonHwPowerBrakeSlowdown,
	"display_clocks":          nvml.ClocksEventReasonDisplayClockSetting,
}

// clockCalls are the calls about clocks and what holds them down.
func (g *gpu) clockCalls(fields *fieldBatch) []call {
	var calls []call
	for _, name := range device.ClockFrequencies.Names {
		domain := clockDomains[name]
		calls = append(calls,
			number("clocks", device.ClockFrequencies.Member(name),
				whole(g, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return g.device.GetClockInfo(domain) }, mega)),
			number("max_clocks", device.ClockLimits.Member(name),
				whole(g, "nvmlDeviceGetMaxClockInfo", func() (uint32, nvml.Return) { return g.device.GetMaxClockInfo(domain) }, mega)))
	}
	held := func(reason string, time fieldNumber) call {
		return part("throttle_times", device.ThrottleTimes.Member(reason), time)
	}
	return append(calls,
		call{name: "throttle_reasons", yields: device.ThrottleReasons.Members(), read: g.throttleReasons},
		number("performance_state", device.PerformanceState, whole(g, "nvmlDeviceGetPerformanceState", g.performanceState, 1)),
		held("sw_power_cap", fields.field(nvml.FI_DEV_PERF_POLICY_POWER, 0, nano)),
		held("sync_boost", fields.field(nvml.FI_DEV_PERF_POLICY_SYNC_BOOST, 0, nano)),
		held("sw_thermal_slowdown", either(fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN),
			fields.field(nvml.FI_DEV_PERF_POLICY_THERMAL, 0, nano))),
		held("hw_thermal_slowdown", fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN)),
		held("hw_power_brake_slowdown", fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN)),
	)
}

// throttleReasons uses the newer of two names of the same call. It reads 1 for each
// reason that is set, and 0 for the others.
func (g *gpu) throttleReasons(read *values) status {
	reasons, result := guarded(g.library, "nvmlDeviceGetCurrentClocksEventReasons", g.device.GetCurrentClocksEventReasons)
	if result == statusFunctionNotFound {
		reasons, result = guarded(g.library, "nvmlDeviceGetCurrentClocksThrottleReasons", g.device.GetCurrentClocksThrottleReasons)
	}
	for i, name := range device.ThrottleReasons.Names {
		read.add(device.ThrottleReasons.Members()[i], float64(min(reasons&throttleBits[name], 1)))
	}
	return result
}

func (g *gpu) performanceState() (int, nvml.Return) {
	state, ret := g.device.GetPerformanceState()
	if ret == nvml.SUCCESS && state == nvml.PSTATE_UNKNOWN {
		ret = nvml.ERROR_NOT_SUPPORTED
	}
	return int(state), ret
}
