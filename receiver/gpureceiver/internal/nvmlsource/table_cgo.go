//go:build cgo && linux

package nvmlsource

import (
	"slices"

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

// memoryLocations are the places of memory errors by the names of
// device.LifetimeCorrected.
var memoryLocations = map[string]nvml.MemoryLocation{
	"device_memory": nvml.MEMORY_LOCATION_DEVICE_MEMORY, "l1_cache": nvml.MEMORY_LOCATION_L1_CACHE,
	"l2_cache": nvml.MEMORY_LOCATION_L2_CACHE, "register_file": nvml.MEMORY_LOCATION_REGISTER_FILE,
	"texture_memory": nvml.MEMORY_LOCATION_TEXTURE_MEMORY, "texture_shm": nvml.MEMORY_LOCATION_TEXTURE_SHM,
	"cbu": nvml.MEMORY_LOCATION_CBU, "sram": nvml.MEMORY_LOCATION_SRAM,
}

// readingCalls are all calls about the readings of a whole GPU, in the order in which
// they are to be made. NVML gives milliwatts and millijoules.
func (g *gpu) readingCalls(id string, fields *fieldBatch) []call {
	current := func(get func() (uint32, uint32, nvml.Return)) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) {
			utilization, _, ret := get()
			return utilization, ret
		}
	}
	rates := func(of func(nvml.Utilization) uint32) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) {
			rates, ret := g.device.GetUtilizationRates()
			return of(rates), ret
		}
	}
	general := rates(func(u nvml.Utilization) uint32 { return u.Gpu })
	controller := rates(func(u nvml.Utilization) uint32 { return u.Memory })
	bar1 := func() (uint64, nvml.Return) {
		info, ret := g.device.GetBAR1MemoryInfo()
		return info.Bar1Used, ret
	}
	held := func(reason string, time fieldNumber) call {
		return part("throttle_times", device.ThrottleTimes.Member(reason), time)
	}
	bytes := func(quantity *device.Quantity, total, single uint32) call {
		return part("nvlink_io", quantity, either(fields.field(total, allLinks, kibibyte), fields.sum(single)))
	}
	errors := func(kind string, id uint32) call {
		return part("nvlink_errors", device.NVLinkErrors.Member(kind), fields.field(id, 0, 1))
	}
	var clocks, lifetime []call
	for i, name := range device.ClockFrequencies.Names {
		domain := clockDomains[name]
		clocks = append(clocks,
			number("clocks", device.ClockFrequencies.Members[i],
				whole(g, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return g.device.GetClockInfo(domain) }, mega)),
			number("max_clocks", device.ClockLimits.Members[i],
				whole(g, "nvmlDeviceGetMaxClockInfo", func() (uint32, nvml.Return) { return g.device.GetMaxClockInfo(domain) }, mega)))
	}
	for i, name := range device.LifetimeCorrected.Names {
		location := memoryLocations[name]
		lifetime = append(lifetime,
			number("ecc_lifetime", device.LifetimeCorrected.Members[i], g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, location)),
			number("ecc_lifetime", device.LifetimeUncorrected.Members[i], g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, location)))
	}
	return slices.Concat([]call{
		g.activity("utilization", device.GeneralEngine, g.buffer(id, nvml.GPU_UTILIZATION_SAMPLES), "nvmlDeviceGetUtilizationRates", general),
		g.activity("encoder_utilization", device.EncoderEngine, g.buffer(id, nvml.ENC_UTILIZATION_SAMPLES), "nvmlDeviceGetEncoderUtilization", current(g.device.GetEncoderUtilization)),
		g.activity("decoder_utilization", device.DecoderEngine, g.buffer(id, nvml.DEC_UTILIZATION_SAMPLES), "nvmlDeviceGetDecoderUtilization", current(g.device.GetDecoderUtilization)),
		number("memory_controller_utilization", device.MemoryControllerUtilization, whole(g, "nvmlDeviceGetUtilizationRates", controller, 0.01)),
		g.memoryCall(),
		number("bar1_memory", device.BAR1Used, whole(g, "nvmlDeviceGetBAR1MemoryInfo", bar1, 1)),
		number("power", device.PowerDraw, whole(g, "nvmlDeviceGetPowerUsage", g.device.GetPowerUsage, milli)),
		g.powerPeak(id),
		number("energy", device.Energy, whole(g, "nvmlDeviceGetTotalEnergyConsumption", g.device.GetTotalEnergyConsumption, milli)),
		number("power_limit_enforced", device.PowerLimit, whole(g, "nvmlDeviceGetEnforcedPowerLimit", g.device.GetEnforcedPowerLimit, milli)),
		part("power_instant", device.PowerInstantGPU, fields.field(nvml.FI_DEV_POWER_INSTANT, 0, milli)),
		part("power_instant", device.PowerInstantModule, fields.field(nvml.FI_DEV_POWER_INSTANT, moduleScope, milli)),
		number("temperature", device.GPUTemperature, g.temperature),
		part("memory_temperature", device.MemoryTemperature, sensor(fields.field(nvml.FI_DEV_MEMORY_TEMP, 0, 1))),
		g.temperatureLimit(fields, device.SlowdownTemperature, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN),
		g.temperatureLimit(fields, device.ShutdownTemperature, nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
		{name: "fans", yields: device.FanSpeeds.Members, read: g.fanSpeeds},
	}, clocks, []call{
		{name: "throttle_reasons", yields: device.ThrottleReasons.Members, read: g.throttleReasons},
		number("performance_state", device.PerformanceState, whole(g, "nvmlDeviceGetPerformanceState", g.performanceState, 1)),
		held("sw_power_cap", fields.field(nvml.FI_DEV_PERF_POLICY_POWER, 0, nano)),
		held("sync_boost", fields.field(nvml.FI_DEV_PERF_POLICY_SYNC_BOOST, 0, nano)),
		held("sw_thermal_slowdown", either(fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN),
			fields.field(nvml.FI_DEV_PERF_POLICY_THERMAL, 0, nano))),
		held("hw_thermal_slowdown", fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN)),
		held("hw_power_brake_slowdown", fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN)),
		number("ecc", device.ECCCorrected, g.totalErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED)),
		number("ecc", device.ECCUncorrected, g.totalErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)),
		{name: "remapped_rows", read: g.remappedRows, yields: []*device.Quantity{
			device.RemappedCorrectable, device.RemappedUncorrectable, device.RemapPending, device.RemapFailed,
		}},
		part("retired_pages", device.RetiredSingleBit, fields.field(nvml.FI_DEV_RETIRED_SBE, 0, 1)),
		part("retired_pages", device.RetiredDoubleBit, fields.field(nvml.FI_DEV_RETIRED_DBE, 0, 1)),
		part("recovery_action", device.RecoveryAction, fields.field(nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 0, 1)),
	}, lifetime, []call{
		number("pcie_link_generation", device.PCIeGeneration, whole(g, "nvmlDeviceGetCurrPcieLinkGeneration", g.device.GetCurrPcieLinkGeneration, 1)),
		number("pcie_link_generation", device.PCIeMaxGeneration, whole(g, "nvmlDeviceGetMaxPcieLinkGeneration", g.device.GetMaxPcieLinkGeneration, 1)),
		number("pcie_link_width", device.PCIeWidth, whole(g, "nvmlDeviceGetCurrPcieLinkWidth", g.device.GetCurrPcieLinkWidth, 1)),
		number("pcie_link_width", device.PCIeMaxWidth, whole(g, "nvmlDeviceGetMaxPcieLinkWidth", g.device.GetMaxPcieLinkWidth, 1)),
		g.throughput(device.PCIeReceiveRate, nvml.PCIE_UTIL_RX_BYTES),
		g.throughput(device.PCIeTransmitRate, nvml.PCIE_UTIL_TX_BYTES),
		part("pcie_replays", device.PCIeReplays, fields.field(nvml.FI_DEV_PCIE_REPLAY_COUNTER, 0, 1)),
		errors("crc_flit", nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL),
		errors("crc_data", nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL),
		errors("replay", nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
		errors("recovery", nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL),
		errors("ecc", nvml.FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL),
		bytes(device.NVLinkReceived, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES),
		bytes(device.NVLinkTransmitted, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES),
		{
			name: "nvlink_links", fields: []fieldKey{linkCount}, yields: []*device.Quantity{device.NVLinkActiveLinks, device.NVLinkInactiveLinks},
			read: func(read *values) status { return g.linkStates(fields, read) },
		},
	}, g.processCalls())
}

// activity is the call about one engine. The driver's samples since the last
// reading give the mean, the peak and the busy time, so that a short burst
// between two readings counts. Without new samples, as on a GPU in MIG mode,
// the driver's last sample period gives the utilization alone.
func (g *gpu) activity(name string, engine *device.Engine, buffer sampleBuffer, symbol string, get func() (uint32, nvml.Return)) call {
	instant := whole(g, symbol, get, 0.01)
	read := func(read *values) status {
		summary, found, result := g.samples(buffer, 100)
		if result == statusGPUIsLost {
			return result
		}
		if found {
			read.add(engine.Utilization, summary.mean/100)
			read.add(engine.Peak, summary.peak/100)
		} else if value, instantly := instant(); instantly == statusSuccess {
			read.add(engine.Utilization, value)
		} else if !buffer.history.started() {
			return instantly
		}
		if buffer.history.started() {
			read.add(engine.BusyTime, buffer.history.total/100)
		}
		return statusSuccess
	}
	return call{name: name, yields: []*device.Quantity{engine.Utilization, engine.Peak, engine.BusyTime}, read: read}
}

// sampleBuffer is one of the driver's buffers and what was read of it.
type sampleBuffer struct {
	kind    nvml.SamplingType
	history *sampleHistory
}

func (g *gpu) buffer(id string, kind nvml.SamplingType) sampleBuffer {
	return sampleBuffer{kind: kind, history: g.history(id, kind)}
}

// samples reads a buffer.
func (g *gpu) samples(buffer sampleBuffer, highest float64) (sampleSummary, bool, status) {
	if !g.has("nvmlDeviceGetSamples") {
		return sampleSummary{}, false, statusFunctionNotFound
	}
	typed, values, ret := g.device.GetSamples(buffer.kind, buffer.history.since())
	switch ret {
	case nvml.SUCCESS:
	case nvml.ERROR_NOT_FOUND:
		values = nil
	default:
		return sampleSummary{}, false, statusOf(ret)
	}
	samples := make([]sample, 0, len(values))
	for _, value := range values {
		if value.TimeStamp == 0 {
			continue
		}
		decoded, ok := decode(typed, value.SampleValue)
		if !ok {
			return sampleSummary{}, false, statusUnexpectedType
		}
		samples = append(samples, sample{time: value.TimeStamp, value: decoded})
	}
	summary, found := buffer.history.add(samples, highest)
	g.impossible.Add(int64(summary.impossible))
	return summary, found, statusSuccess
}

// memoryCall prefers the call that does not count what the driver reserves for
// itself as used.
func (g *gpu) memoryCall() call {
	read := func(read *values) status {
		info, result := guarded(g.library, "nvmlDeviceGetMemoryInfo_v2", g.device.GetMemoryInfo_v2)
		if result == statusGPUIsLost {
			return result
		}
		if result == statusSuccess {
			read.add(device.MemoryTotal, float64(info.Total))
			read.add(device.MemoryUsed, float64(info.Used))
			read.add(device.MemoryReserved, float64(info.Reserved))
			return result
		}
		older, result := guarded(g.library, "nvmlDeviceGetMemoryInfo", g.device.GetMemoryInfo)
		read.add(device.MemoryTotal, float64(older.Total))
		read.add(device.MemoryUsed, float64(older.Used))
		return result
	}
	return call{name: "memory", read: read, yields: []*device.Quantity{device.MemoryTotal, device.MemoryUsed, device.MemoryReserved}}
}

// highestMilliwatts is above what any board can draw.
const highestMilliwatts = 10_000_000

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

// temperature uses the old call where it exists, which every driver since
// 2011 answers, and its successor where the old one was removed.
func (g *gpu) temperature() (float64, status) {
	if g.has("nvmlDeviceGetTemperature") {
		celsius, ret := g.device.GetTemperature(nvml.TEMPERATURE_GPU)
		return signed(celsius), statusOf(ret)
	}
	if g.has("nvmlDeviceGetTemperatureV") {
		temperature, ret := g.device.GetTemperatureV().V1()
		return float64(temperature.Temperature), statusOf(ret)
	}
	return 0, statusFunctionNotFound
}

// signed restores the sign of a temperature, which NVML's older call returns as
// an unsigned number.
func signed(celsius uint32) float64 {
	return float64(int32(celsius))
}

// temperatureLimit is the call for a limit in degrees, which GPUs up to Ampere
// have. Later ones have a field with their distance from the limit, and a wrong
// answer to this call.
func (g *gpu) temperatureLimit(fields *fieldBatch, quantity *device.Quantity, kind nvml.TemperatureThresholds) call {
	margin := fieldKey{nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, 0}
	degrees := whole(g, "nvmlDeviceGetTemperatureThreshold", func() (uint32, nvml.Return) { return g.device.GetTemperatureThreshold(kind) }, 1)
	c := number("temperature_limits", quantity, func() (float64, status) {
		if _, result := fields.number(margin); result == statusSuccess {
			return 0, statusNotSupported
		}
		return degrees()
	})
	c.fields = []fieldKey{margin}
	return c
}

// fanSpeeds reads the fans. The others are still read when one fails. Without the call for
// each fan, or for their number, there is at most one, or only their mean.
func (g *gpu) fanSpeeds(read *values) status {
	count, result := 0, statusFunctionNotFound
	if g.has("nvmlDeviceGetFanSpeed_v2") {
		count, result = guarded(g.library, "nvmlDeviceGetNumFans", g.device.GetNumFans)
	}
	switch {
	case result.unsupported():
		percentage, result := guarded(g.library, "nvmlDeviceGetFanSpeed", g.device.GetFanSpeed)
		read.add(device.FanSpeeds.Members[0], float64(percentage)/100)
		return result
	case result == statusSuccess && count == 0:
		return statusNotSupported
	case result != statusSuccess:
		return result
	}
	last := nvml.SUCCESS
	for i, fan := range device.FanSpeeds.Members[:min(count, len(device.FanSpeeds.Members))] {
		percentage, ret := g.device.GetFanSpeed_v2(i)
		if ret == nvml.SUCCESS {
			read.add(fan, float64(percentage)/100)
		} else {
			last = ret
		}
	}
	if len(read.numbers) == 0 || last == nvml.ERROR_GPU_IS_LOST {
		return statusOf(last)
	}
	return statusSuccess
}

// throttleReasons uses the newer of two names of the same call. It reads 1 for each
// reason that is set, and 0 for the others.
func (g *gpu) throttleReasons(read *values) status {
	reasons, result := guarded(g.library, "nvmlDeviceGetCurrentClocksEventReasons", g.device.GetCurrentClocksEventReasons)
	if result == statusFunctionNotFound {
		reasons, result = guarded(g.library, "nvmlDeviceGetCurrentClocksThrottleReasons", g.device.GetCurrentClocksThrottleReasons)
	}
	for i, name := range device.ThrottleReasons.Names {
		read.add(device.ThrottleReasons.Members[i], float64(min(reasons&throttleBits[name], 1)))
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

// throughput is the slow call for the present rate of PCIe in one direction.
// NVML gives kilobytes of 1000 bytes per second.
func (g *gpu) throughput(quantity *device.Quantity, direction nvml.PcieUtilCounter) call {
	c := number("pcie_throughput", quantity, whole(g, "nvmlDeviceGetPcieThroughput",
		func() (uint32, nvml.Return) { return g.device.GetPcieThroughput(direction) }, 1000))
	c.slow = true
	return c
}

// linkStates counts the NVLinks that are up and down. If the GPU does not report
// their number, it reads them until there is no next one.
func (g *gpu) linkStates(fields *fieldBatch, read *values) status {
	if !g.has("nvmlDeviceGetNvLinkState") {
		return statusFunctionNotFound
	}
	links, result := fields.links()
	if result != statusSuccess {
		links = maxLinks
	}
	var active, all float64
	result = statusNotSupported
	for link := range links {
		state, ret := g.device.GetNvLinkState(int(link))
		if ret != nvml.SUCCESS {
			if all == 0 && ret != nvml.ERROR_INVALID_ARGUMENT {
				result = statusOf(ret)
			}
			break
		}
		result = statusSuccess
		all++
		active += flag(state == nvml.FEATURE_ENABLED)
	}
	read.add(device.NVLinkActiveLinks, active)
	read.add(device.NVLinkInactiveLinks, all-active)
	return result
}
