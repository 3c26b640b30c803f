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
func (g *boundGPU) clockCalls(fields *fieldBatch) []call {
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
		held("sw_power_cap", fields.field(fieldThrottlePower, 0, nano)),
		held("sync_boost", fields.field(fieldThrottleBoost, 0, nano)),
		held("sw_thermal_slowdown", either(fields.long(fieldThrottleSWThermal, nano), fields.field(fieldThrottleThermal, 0, nano))),
		held("hw_thermal_slowdown", fields.long(fieldThrottleHWThermal, nano)),
		held("hw_power_brake_slowdown", fields.long(fieldThrottlePowerBrake, nano)),
	)
}

// throttleReasons uses the newer of two names of the same call.
func (g *boundGPU) throttleReasons() (func(*device.Readings), status) {
	var reasons uint64
	var ret nvml.Return
	switch {
	case g.has("nvmlDeviceGetCurrentClocksEventReasons"):
		reasons, ret = g.device.GetCurrentClocksEventReasons()
	case g.has("nvmlDeviceGetCurrentClocksThrottleReasons"):
		reasons, ret = g.device.GetCurrentClocksThrottleReasons()
	default:
		return nil, statusFunctionNotFound
	}
	return func(r *device.Readings) { r.Clocks.Throttle = throttled(reasons) }, statusOf(ret)
}

// throttled returns 1 for each reason that is set, and 0 for the others.
func throttled(reasons uint64) device.Numbers {
	numbers := make(device.Numbers, len(throttleBits))
	for name, bit := range throttleBits {
		numbers[name] = 0
		if reasons&bit != 0 {
			numbers[name] = 1
		}
	}
	return numbers
}

func (g *boundGPU) performanceState() (int, nvml.Return) {
	state, ret := g.device.GetPerformanceState()
	if ret == nvml.SUCCESS && state == nvml.PSTATE_UNKNOWN {
		ret = nvml.ERROR_NOT_SUPPORTED
	}
	return int(state), ret
}
