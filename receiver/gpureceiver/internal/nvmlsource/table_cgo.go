//go:build cgo && linux

package nvmlsource

import (
	"maps"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// table makes the calls about the readings of one GPU. They remember earlier answers, so
// that a GPU's calls are made once and used again.
type table struct {
	*gpu
	fields *fieldBatch
	// histories are what was read of the driver's buffers. They are remembered longer than
	// the GPU's handle, so that busy times continue when the library is opened again.
	histories map[nvml.SamplingType]*sampleHistory
}

// calls returns the calls that yield a wanted quantity, in the order in which they are to
// be made: the quick calls that matter most come first, then GPM, and slow ones last.
func (t *table) calls(wants func(*device.Quantity) bool) []call {
	var calls, parts, slow []call
	for _, c := range t.all() {
		switch {
		case !c.wanted(wants):
		case c.slow:
			slow = append(slow, c)
		case c.fields == nil:
			calls = append(calls, c)
		default:
			t.fields.want(c.fields...)
			parts = append(parts, c)
		}
	}
	if len(parts) > 0 {
		calls = append(calls, call{name: "fields", read: func(*values) status { return t.fields.fetch() }})
	}
	calls = append(calls, parts...)
	if gpm := (call{name: "gpm", read: t.readGPM, yields: slices.Collect(maps.Values(gpmMetrics))}); gpm.wanted(wants) {
		calls = append(calls, gpm)
	}
	return append(calls, slow...)
}

// all are the calls but that for GPM: those about a GPU instance, and one that every MIG
// device answers, or those about a whole GPU.
func (t *table) all() []call {
	if t.parent != nil {
		answered := call{name: "compute_instance", read: func(*values) status {
			_, result := t.computeInstance()
			return result
		}}
		return append([]call{answered, t.memoryCall()}, t.processCalls()...)
	}
	return t.wholeCalls()
}

// wholeCalls are the calls about a whole GPU. NVML gives milliwatts and millijoules.
func (t *table) wholeCalls() []call {
	g, fields := t.gpu, t.fields
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
	var lifetime []call
	for i, corrected := range device.LifetimeCorrected.Members {
		location := nvml.MemoryLocation(numberOf[corrected]) // #nosec G115 -- it is small
		lifetime = append(lifetime,
			number("ecc_lifetime", corrected, t.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, location)),
			number("ecc_lifetime", device.LifetimeUncorrected.Members[i], t.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, location)))
	}
	return slices.Concat([]call{
		t.activity("utilization", device.GeneralEngine, nvml.GPU_UTILIZATION_SAMPLES, "nvmlDeviceGetUtilizationRates", general),
		t.activity("encoder_utilization", device.EncoderEngine, nvml.ENC_UTILIZATION_SAMPLES, "nvmlDeviceGetEncoderUtilization", current(g.device.GetEncoderUtilization)),
		t.activity("decoder_utilization", device.DecoderEngine, nvml.DEC_UTILIZATION_SAMPLES, "nvmlDeviceGetDecoderUtilization", current(g.device.GetDecoderUtilization)),
		number("memory_controller_utilization", device.MemoryControllerUtilization, whole(g, "nvmlDeviceGetUtilizationRates", controller, 0.01)),
		t.memoryCall(),
		number("bar1_memory", device.BAR1Used, whole(g, "nvmlDeviceGetBAR1MemoryInfo", bar1, 1)),
		t.powerPeak(),
		number("temperature", device.GPUTemperature, t.temperature),
		part("memory_temperature", device.MemoryTemperature, sensor(fields.field(nvml.FI_DEV_MEMORY_TEMP, 0, 1))),
		t.temperatureLimit(device.SlowdownTemperature, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN),
		t.temperatureLimit(device.ShutdownTemperature, nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
		{name: "fans", yields: device.FanSpeeds.Members, read: t.fanSpeeds},
		{name: "throttle_reasons", yields: device.ThrottleReasons.Members, read: t.throttleReasons},
		number("performance_state", device.PerformanceState, whole(g, "nvmlDeviceGetPerformanceState", t.performanceState, 1)),
		held("sw_thermal_slowdown", either(fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN),
			fields.field(nvml.FI_DEV_PERF_POLICY_THERMAL, 0, nano))),
		held("hw_thermal_slowdown", fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN)),
		held("hw_power_brake_slowdown", fields.long(nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN)),
		number("ecc", device.ECCCorrected, t.totalErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED)),
		number("ecc", device.ECCUncorrected, t.totalErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)),
		number("fabric_state", device.FabricState, whole(g, "nvmlDeviceGetGpuFabricInfo", t.fabricState, 1)),
		{name: "remapped_rows", read: t.remappedRows, yields: []*device.Quantity{
			device.RemappedCorrectable, device.RemappedUncorrectable, device.RemapPending, device.RemapFailed,
		}},
	}, lifetime, listedCalls(g, fields), []call{
		t.throughput(device.PCIeReceiveRate, nvml.PCIE_UTIL_RX_BYTES),
		t.throughput(device.PCIeTransmitRate, nvml.PCIE_UTIL_TX_BYTES),
		bytes(device.NVLinkReceived, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES),
		bytes(device.NVLinkTransmitted, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES),
		{
			name: "nvlink_links", fields: []fieldKey{linkCount}, yields: []*device.Quantity{device.NVLinkActiveLinks, device.NVLinkInactiveLinks},
			read: t.linkStates,
		},
	}, t.processCalls())
}

// activity is the call about one engine. The driver's samples since the last
// reading give the mean, the peak and the busy time, so that a short burst
// between two readings counts. Without new samples, as on a GPU in MIG mode,
// the driver's last sample period gives the utilization alone.
func (t *table) activity(name string, engine *device.Engine, kind nvml.SamplingType, symbol string, get func() (uint32, nvml.Return)) call {
	instant, history := whole(t.gpu, symbol, get, 0.01), t.history(kind)
	read := func(read *values) status {
		summary, found, result := t.samples(kind, history, 100)
		if result == statusGPUIsLost {
			return result
		}
		if found {
			read.add(engine.Utilization, summary.mean/100)
			read.add(engine.Peak, summary.peak/100)
		} else if value, instantly := instant(); instantly == statusSuccess {
			read.add(engine.Utilization, value)
		} else if !history.started() {
			return instantly
		}
		if history.started() {
			read.add(engine.BusyTime, history.total/100)
		}
		return statusSuccess
	}
	return call{name: name, yields: []*device.Quantity{engine.Utilization, engine.Peak, engine.BusyTime}, read: read}
}

// history returns what was read of a buffer before.
func (t *table) history(kind nvml.SamplingType) *sampleHistory {
	return shared.Entry(t.histories, kind, func() *sampleHistory { return new(sampleHistory) })
}

// samples reads a buffer.
func (t *table) samples(kind nvml.SamplingType, history *sampleHistory, highest float64) (sampleSummary, bool, status) {
	if !t.has("nvmlDeviceGetSamples") {
		return sampleSummary{}, false, statusFunctionNotFound
	}
	typed, values, ret := t.device.GetSamples(kind, history.since())
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
	summary, found := history.add(samples, highest)
	t.impossible.Add(int64(summary.impossible))
	return summary, found, statusSuccess
}

// memoryCall prefers the call that does not count what the driver reserves for
// itself as used.
func (t *table) memoryCall() call {
	read := func(read *values) status {
		info, result := guarded(t.library, "nvmlDeviceGetMemoryInfo_v2", t.device.GetMemoryInfo_v2)
		if result == statusSuccess {
			read.add(device.MemoryReserved, float64(info.Reserved))
		} else if result != statusGPUIsLost {
			var older nvml.Memory
			older, result = guarded(t.library, "nvmlDeviceGetMemoryInfo", t.device.GetMemoryInfo)
			info.Total, info.Used = older.Total, older.Used
		}
		read.add(device.MemoryTotal, float64(info.Total))
		read.add(device.MemoryUsed, float64(info.Used))
		return result
	}
	return call{name: "memory", read: read, yields: []*device.Quantity{device.MemoryTotal, device.MemoryUsed, device.MemoryReserved}}
}

// highestMilliwatts is above what any board can draw.
const highestMilliwatts = 10_000_000

// powerPeak is the call for the highest of the driver's samples. Without new
// ones there is no peak.
func (t *table) powerPeak() call {
	history := t.history(nvml.TOTAL_POWER_SAMPLES)
	return call{name: "power_samples", yields: []*device.Quantity{device.PowerPeak}, read: func(read *values) status {
		summary, found, result := t.samples(nvml.TOTAL_POWER_SAMPLES, history, highestMilliwatts)
		if found {
			read.add(device.PowerPeak, summary.peak*milli)
		}
		return result
	}}
}

// temperature uses the old call where it exists, which every driver since
// 2011 answers, and its successor where the old one was removed.
func (t *table) temperature() (float64, status) {
	if t.has("nvmlDeviceGetTemperature") {
		celsius, ret := t.device.GetTemperature(nvml.TEMPERATURE_GPU)
		return signed(celsius), statusOf(ret)
	}
	if t.has("nvmlDeviceGetTemperatureV") {
		temperature, ret := t.device.GetTemperatureV().V1()
		return float64(temperature.Temperature), statusOf(ret)
	}
	return 0, statusFunctionNotFound
}

// signed restores the sign of a temperature, which NVML's older call returns as
// an unsigned number.
func signed(celsius uint32) float64 { return float64(int32(celsius)) }

// temperatureLimit is the call for a limit in degrees, which GPUs up to Ampere
// have. Later ones have a field with their distance from the limit, and a wrong
// answer to this call.
func (t *table) temperatureLimit(quantity *device.Quantity, kind nvml.TemperatureThresholds) call {
	margin := fieldKey{nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, 0}
	degrees := whole(t.gpu, "nvmlDeviceGetTemperatureThreshold", with(t.device.GetTemperatureThreshold, kind), 1)
	c := number("temperature_limits", quantity, func() (float64, status) {
		if _, result := t.fields.number(margin); result == statusSuccess {
			return 0, statusNotSupported
		}
		return degrees()
	})
	c.fields = []fieldKey{margin}
	return c
}

// fanSpeeds reads the fans. The others are still read when one fails. Without the call for
// each fan, or for their number, there is at most one, or only their mean.
func (t *table) fanSpeeds(read *values) status {
	count, result := 0, statusFunctionNotFound
	if t.has("nvmlDeviceGetFanSpeed_v2") {
		count, result = guarded(t.library, "nvmlDeviceGetNumFans", t.device.GetNumFans)
	}
	switch {
	case result.unsupported():
		percentage, result := guarded(t.library, "nvmlDeviceGetFanSpeed", t.device.GetFanSpeed)
		read.add(device.FanSpeeds.Members[0], float64(percentage)/100)
		return result
	case result == statusSuccess && count == 0:
		return statusNotSupported
	case result != statusSuccess:
		return result
	}
	last := nvml.SUCCESS
	for i, fan := range device.FanSpeeds.Members[:min(count, len(device.FanSpeeds.Members))] {
		percentage, ret := t.device.GetFanSpeed_v2(i)
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
func (t *table) throttleReasons(read *values) status {
	reasons, result := guarded(t.library, "nvmlDeviceGetCurrentClocksEventReasons", t.device.GetCurrentClocksEventReasons)
	if result == statusFunctionNotFound {
		reasons, result = guarded(t.library, "nvmlDeviceGetCurrentClocksThrottleReasons", t.device.GetCurrentClocksThrottleReasons)
	}
	for _, reason := range device.ThrottleReasons.Members {
		read.add(reason, float64(min(reasons&numberOf[reason], 1)))
	}
	return result
}

func (t *table) performanceState() (int, nvml.Return) {
	state, ret := t.device.GetPerformanceState()
	if ret == nvml.SUCCESS && state == nvml.PSTATE_UNKNOWN {
		ret = nvml.ERROR_NOT_SUPPORTED
	}
	return int(state), ret
}

// fabricState is NVML's state of the registration with the NVLink fabric, and 1 more if that was
// completed with an error.
func (t *table) fabricState() (uint32, nvml.Return) {
	info, ret := t.device.GetGpuFabricInfoV().V1()
	switch {
	case ret == nvml.SUCCESS && info.State == nvml.GPU_FABRIC_STATE_NOT_SUPPORTED:
		ret = nvml.ERROR_NOT_SUPPORTED
	case info.State == nvml.GPU_FABRIC_STATE_COMPLETED && nvml.Return(info.Status) != nvml.SUCCESS: // #nosec G115 -- only compared
		info.State++
	}
	return uint32(info.State), ret
}

func (t *table) totalErrors(kind nvml.MemoryErrorType) func() (float64, status) {
	return whole(t.gpu, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return t.device.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	}, 1)
}

func (t *table) lifetimeErrors(kind nvml.MemoryErrorType, location nvml.MemoryLocation) func() (float64, status) {
	return whole(t.gpu, "nvmlDeviceGetMemoryErrorCounter", func() (uint64, nvml.Return) {
		count, ret := t.device.GetMemoryErrorCounter(kind, nvml.AGGREGATE_ECC, location)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			// A driver returns this for a location that is newer than itself.
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		return count, ret
	}, 1)
}

func (t *table) remappedRows(read *values) status {
	if !t.has("nvmlDeviceGetRemappedRows") {
		return statusFunctionNotFound
	}
	correctable, uncorrectable, pending, failed, ret := t.device.GetRemappedRows()
	read.add(device.RemappedCorrectable, float64(correctable))
	read.add(device.RemappedUncorrectable, float64(uncorrectable))
	read.add(device.RemapPending, shared.OneIf[float64](pending))
	read.add(device.RemapFailed, shared.OneIf[float64](failed))
	return statusOf(ret)
}

// throughput is the slow call for the present rate of PCIe in one direction.
// NVML gives kilobytes of 1000 bytes per second.
func (t *table) throughput(quantity *device.Quantity, direction nvml.PcieUtilCounter) call {
	c := number("pcie_throughput", quantity, whole(t.gpu, "nvmlDeviceGetPcieThroughput", with(t.device.GetPcieThroughput, direction), 1000))
	c.slow = true
	return c
}

// linkStates counts the NVLinks that are up and down. If the GPU does not report
// their number, it reads them until there is no next one.
func (t *table) linkStates(read *values) status {
	if !t.has("nvmlDeviceGetNvLinkState") {
		return statusFunctionNotFound
	}
	links, result := t.fields.links()
	if result != statusSuccess {
		links = maxLinks
	}
	var active, all float64
	result = statusNotSupported
	for link := range links {
		state, ret := t.device.GetNvLinkState(int(link))
		if ret != nvml.SUCCESS {
			if all == 0 && ret != nvml.ERROR_INVALID_ARGUMENT {
				result = statusOf(ret)
			}
			break
		}
		result = statusSuccess
		all++
		active += shared.OneIf[float64](state == nvml.FEATURE_ENABLED)
	}
	read.add(device.NVLinkActiveLinks, active)
	read.add(device.NVLinkInactiveLinks, all-active)
	return result
}

// processCalls are the calls for the processes that hold a context of each of
// device.ProcessTypes, and for the driver's samples of them since the call before, which
// it does not take of MIG devices. The binding uses the newest version of a symbol.
func (t *table) processCalls() []call {
	about := func(name string, quantity *device.Quantity, read func(*values) status) call {
		return call{name: name, processes: true, slow: true, yields: []*device.Quantity{quantity}, read: read}
	}
	list := func(kind, symbol string, get func(nvml.Device) ([]nvml.ProcessInfo, nvml.Return)) call {
		return about(kind+"_processes", device.ProcessList, func(read *values) status {
			if !t.has(symbol+"_v3", symbol+"_v2", symbol) {
				return statusFunctionNotFound
			}
			processes, ret := get(t.device) // a MIG device has another handle each time
			read.addTo = func(lists *processLists) { lists.byType[kind] = processes }
			return statusOf(ret)
		})
	}
	calls := []call{
		list("compute", "nvmlDeviceGetComputeRunningProcesses", nvml.Device.GetComputeRunningProcesses),
		list("graphics", "nvmlDeviceGetGraphicsRunningProcesses", nvml.Device.GetGraphicsRunningProcesses),
		list("mps", "nvmlDeviceGetMPSComputeRunningProcesses", nvml.Device.GetMPSComputeRunningProcesses),
	}
	if t.parent != nil {
		return calls
	}
	var since uint64 // in the driver's microseconds
	return append(calls, about("process_utilization", device.ProcessUtilization, func(read *values) status {
		samples, result := t.processUtilization(since)
		for _, sample := range samples {
			since = max(since, sample.TimeStamp)
		}
		read.addTo = func(lists *processLists) { lists.samples, lists.sampled = samples, true }
		return result
	}))
}

// processUtilization returns the driver's samples of processes after a time in its own
// microseconds, 0 for all samples that it still has. No samples mean that every process
// was idle.
func (t *table) processUtilization(since uint64) ([]nvml.ProcessUtilizationSample, status) {
	samples, result := guarded(t.library, "nvmlDeviceGetProcessUtilization", func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return t.device.GetProcessUtilization(since)
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
