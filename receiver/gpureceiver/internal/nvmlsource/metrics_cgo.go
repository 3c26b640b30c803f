//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// milli is the scale of NVML's milliwatts and millijoules.
	milli = 1e-3
	nano  = 1e-9
	mega  = 1e6
	// highestMilliwatts is above what any board can draw.
	highestMilliwatts = 10_000_000
	// maxFans bounds what a library can make this package ask for.
	maxFans = 16
)

// Calls implements gpu. The quick calls that matter most come first.
func (g *boundGPU) Calls(id string, wanted func(call string) bool) []call {
	if g.parent != nil {
		return g.migCalls(wanted)
	}
	var all []call
	for _, group := range [][]call{
		g.activityCalls(id), g.memoryCalls(), g.powerCalls(id), g.thermalCalls(), g.clockCalls(),
		g.errorCalls(), g.linkCalls(),
	} {
		for _, c := range group {
			if wanted(c.name) {
				all = append(all, c)
			}
		}
	}
	all = append(all, g.fieldCalls(wanted)...)
	if wanted(callGPM) {
		all = append(all, call{name: callGPM, read: g.readGPM})
	}
	return all
}

// migCalls are those about a GPU instance, and one that every MIG device
// answers.
func (g *boundGPU) migCalls(wanted func(call string) bool) []call {
	calls := []call{{name: "compute_instance", read: func() (func(*device.Readings), status) {
		_, _, result := g.Instances()
		return func(*device.Readings) {}, result
	}}}
	for _, c := range []call{{name: callMemory, read: g.memory}, {name: callGPM, read: g.readGPM}} {
		if wanted(c.name) {
			calls = append(calls, c)
		}
	}
	return calls
}

// whole32 asks for a 32-bit number in a unit.
func (g *boundGPU) whole32(symbol string, get func() (uint32, nvml.Return), unit float64) func() (float64, status) {
	return func() (float64, status) {
		if !g.has(symbol) {
			return 0, statusFunctionNotFound
		}
		value, ret := get()
		return float64(value) * unit, statusOf(ret)
	}
}

// wholeInt is whole32 for the binding's ints.
func (g *boundGPU) wholeInt(symbol string, get func() (int, nvml.Return)) func() (float64, status) {
	return func() (float64, status) {
		if !g.has(symbol) {
			return 0, statusFunctionNotFound
		}
		value, ret := get()
		return float64(value), statusOf(ret)
	}
}

// activityCalls are those of the engines.
func (g *boundGPU) activityCalls(id string) []call {
	period := func(get func() (uint32, uint32, nvml.Return)) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) {
			utilization, _, ret := get()
			return utilization, ret
		}
	}
	general := func() (uint32, nvml.Return) {
		rates, ret := g.device.GetUtilizationRates()
		return rates.Gpu, ret
	}
	return []call{
		g.activity(callUtilization, g.buffer(id, nvml.GPU_UTILIZATION_SAMPLES), "nvmlDeviceGetUtilizationRates", general,
			func(r *device.Readings) *device.Activity { return &r.Activity.General }),
		g.activity(callEncoderUtilization, g.buffer(id, nvml.ENC_UTILIZATION_SAMPLES), "nvmlDeviceGetEncoderUtilization", period(g.device.GetEncoderUtilization),
			func(r *device.Readings) *device.Activity { return &r.Activity.Encoder }),
		g.activity(callDecoderUtilization, g.buffer(id, nvml.DEC_UTILIZATION_SAMPLES), "nvmlDeviceGetDecoderUtilization", period(g.device.GetDecoderUtilization),
			func(r *device.Readings) *device.Activity { return &r.Activity.Decoder }),
		g.activity(callJPEGUtilization, g.buffer(id, nvml.JPG_UTILIZATION_SAMPLES), "nvmlDeviceGetJpgUtilization", period(g.device.GetJpgUtilization),
			func(r *device.Readings) *device.Activity { return &r.Activity.JPEG }),
		g.activity(callOFAUtilization, g.buffer(id, nvml.OFA_UTILIZATION_SAMPLES), "nvmlDeviceGetOfaUtilization", period(g.device.GetOfaUtilization),
			func(r *device.Readings) *device.Activity { return &r.Activity.OFA }),
		number(callMemoryController, g.whole32("nvmlDeviceGetUtilizationRates", func() (uint32, nvml.Return) {
			rates, ret := g.device.GetUtilizationRates()
			return rates.Memory, ret
		}, 0.01), func(r *device.Readings) *device.Number { return &r.Memory.ControllerUtilization }),
	}
}

// activity is one engine's call. What the driver sampled since the last
// reading gives the mean, the peak and the busy time, so that a short burst
// between two readings counts. Where there are no new samples, as on a GPU in
// MIG mode, the driver's last sample period gives the utilization alone.
func (g *boundGPU) activity(name string, buffer sampleBuffer, symbol string, get func() (uint32, nvml.Return), place func(*device.Readings) *device.Activity) call {
	instant := g.whole32(symbol, get, 0.01)
	return call{name: name, read: func() (func(*device.Readings), status) {
		summary, found, result := g.samples(buffer, 100)
		if result == statusGPUIsLost {
			return nil, result
		}
		var told device.Activity
		if found {
			told.Utilization, told.Peak = device.Read(summary.mean/100), device.Read(summary.peak/100)
		} else if value, instantly := instant(); instantly == statusSuccess {
			told.Utilization = device.Read(value)
		} else if !buffer.history.started() {
			return nil, instantly
		}
		if buffer.history.started() {
			told.BusySeconds = device.Read(buffer.history.total / 100)
		}
		return func(r *device.Readings) { *place(r) = told }, statusSuccess
	}}
}

// sampleBuffer is one of the driver's buffers and what was read of it.
type sampleBuffer struct {
	kind    nvml.SamplingType
	history *sampleHistory
}

func (g *boundGPU) buffer(id string, kind nvml.SamplingType) sampleBuffer {
	return sampleBuffer{kind: kind, history: g.history(id, kind)}
}

// samples reads a buffer.
func (g *boundGPU) samples(buffer sampleBuffer, highest float64) (sampleSummary, bool, status) {
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
		decoded, ok := valueType(typed).number(value.SampleValue)
		if !ok {
			return sampleSummary{}, false, statusUnexpectedType
		}
		samples = append(samples, sample{time: value.TimeStamp, value: decoded})
	}
	summary, found := buffer.history.add(samples, highest)
	g.impossible.Add(int64(summary.impossible))
	return summary, found, statusSuccess
}

// memoryCalls are those about memory.
func (g *boundGPU) memoryCalls() []call {
	return []call{
		{name: callMemory, read: g.memory},
		{name: callBAR1Memory, read: func() (func(*device.Readings), status) {
			if !g.has("nvmlDeviceGetBAR1MemoryInfo") {
				return nil, statusFunctionNotFound
			}
			info, ret := g.device.GetBAR1MemoryInfo()
			return func(r *device.Readings) { r.Memory.BAR1Used = device.Read(float64(info.Bar1Used)) }, statusOf(ret)
		}},
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

// powerCalls are those about power and energy. NVML gives milliwatts and
// millijoules.
func (g *boundGPU) powerCalls(id string) []call {
	power := g.buffer(id, nvml.TOTAL_POWER_SAMPLES)
	limits := func(r *device.Readings) *device.Numbers { return &r.Power.Limits }
	constraint := func(pick func(low, high uint32) uint32) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) {
			low, high, ret := g.device.GetPowerManagementLimitConstraints()
			return pick(low, high), ret
		}
	}
	return []call{
		number(callPower, g.whole32("nvmlDeviceGetPowerUsage", g.device.GetPowerUsage, milli),
			func(r *device.Readings) *device.Number { return &r.Power.Draw }),
		{name: callPowerSamples, read: func() (func(*device.Readings), status) {
			summary, found, result := g.samples(power, highestMilliwatts)
			if result == statusSuccess && !found {
				return func(*device.Readings) {}, statusSuccess
			}
			return func(r *device.Readings) { r.Power.Peak = device.Read(summary.peak * milli) }, result
		}},
		number(callEnergy, func() (float64, status) {
			if !g.has("nvmlDeviceGetTotalEnergyConsumption") {
				return 0, statusFunctionNotFound
			}
			millijoules, ret := g.device.GetTotalEnergyConsumption()
			return float64(millijoules) * milli, statusOf(ret)
		}, func(r *device.Readings) *device.Number { return &r.Power.Energy }),
		named(callPowerEnforced, g.whole32("nvmlDeviceGetEnforcedPowerLimit", g.device.GetEnforcedPowerLimit, milli), limits, "enforced"),
		named(callPowerRequested, g.whole32("nvmlDeviceGetPowerManagementLimit", g.device.GetPowerManagementLimit, milli), limits, "requested"),
		named(callPowerDefault, g.whole32("nvmlDeviceGetPowerManagementDefaultLimit", g.device.GetPowerManagementDefaultLimit, milli), limits, "default"),
		named(callPowerMin, g.whole32("nvmlDeviceGetPowerManagementLimitConstraints", constraint(func(low, _ uint32) uint32 { return low }), milli), limits, "min"),
		named(callPowerMax, g.whole32("nvmlDeviceGetPowerManagementLimitConstraints", constraint(func(_, high uint32) uint32 { return high }), milli), limits, "max"),
	}
}

// thermalCalls are those about temperatures and fans.
func (g *boundGPU) thermalCalls() []call {
	fans := -1
	return []call{
		number(callTemperature, g.temperature, func(r *device.Readings) *device.Number { return &r.Thermal.GPU }),
		{name: callFans, read: func() (func(*device.Readings), status) {
			if fans < 0 {
				count, result := g.countFans()
				if result != statusSuccess {
					return nil, result
				}
				fans = count
			}
			return g.fanSpeeds(fans)
		}},
	}
}

// temperature uses the old call where it exists, which every driver since
// 2011 answers, and its successor where the old one was removed.
func (g *boundGPU) temperature() (float64, status) {
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

// signed reads a temperature below zero, which NVML's older call gives as a
// number without a sign.
func signed(celsius uint32) float64 {
	return float64(int32(celsius))
}

// temperatureLimits are degrees on GPUs up to Ampere. Later ones tell how far
// they are from a limit, with a sign, in other fields; what they answer here
// is not to be trusted.
func (g *boundGPU) temperatureLimits(batch *fieldBatch) []call {
	limit := func(kind nvml.TemperatureThresholds) func() (float64, status) {
		ask := g.whole32("nvmlDeviceGetTemperatureThreshold", func() (uint32, nvml.Return) { return g.device.GetTemperatureThreshold(kind) }, 1)
		return func() (float64, status) {
			if _, result := batch.number(fieldKey{fieldSlowdownMargin, 0}); result == statusSuccess {
				return 0, statusNotSupported
			}
			return ask()
		}
	}
	return []call{
		number(callTemperatureLimits, limit(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN), func(r *device.Readings) *device.Number { return &r.Thermal.Slowdown }),
		number(callTemperatureLimits, limit(nvml.TEMPERATURE_THRESHOLD_SHUTDOWN), func(r *device.Readings) *device.Number { return &r.Thermal.Shutdown }),
	}
}

// countFans returns how many fans can be asked for, 0 where only their mean
// can. Without the call there is at most one.
func (g *boundGPU) countFans() (int, status) {
	if !g.has("nvmlDeviceGetNumFans") || !g.has("nvmlDeviceGetFanSpeed_v2") {
		return 0, statusSuccess
	}
	count, ret := g.device.GetNumFans()
	if ret == nvml.SUCCESS && count == 0 {
		return 0, statusNotSupported
	}
	if statusOf(ret).unsupported() {
		return 0, statusSuccess
	}
	return min(count, maxFans), statusOf(ret)
}

// fanSpeeds reads the fans. One that does not answer costs no other.
func (g *boundGPU) fanSpeeds(count int) (func(*device.Readings), status) {
	if count == 0 {
		if !g.has("nvmlDeviceGetFanSpeed") {
			return nil, statusFunctionNotFound
		}
		percentage, ret := g.device.GetFanSpeed()
		return func(r *device.Readings) { r.Thermal.Fans = []device.Number{device.Read(float64(percentage) / 100)} }, statusOf(ret)
	}
	fans, answered, last := make([]device.Number, count), false, nvml.SUCCESS
	for i := range fans {
		percentage, ret := g.device.GetFanSpeed_v2(i)
		if ret == nvml.SUCCESS {
			fans[i], answered = device.Read(float64(percentage)/100), true
		} else {
			last = ret
		}
	}
	if !answered || last == nvml.ERROR_GPU_IS_LOST {
		return nil, statusOf(last)
	}
	return func(r *device.Readings) { r.Thermal.Fans = fans }, statusSuccess
}

// clockCalls are those about clocks and what holds them down.
func (g *boundGPU) clockCalls() []call {
	var calls []call
	for _, domain := range []struct {
		name string
		kind nvml.ClockType
	}{
		{"graphics", nvml.CLOCK_GRAPHICS}, {"sm", nvml.CLOCK_SM}, {"memory", nvml.CLOCK_MEM}, {"video", nvml.CLOCK_VIDEO},
	} {
		calls = append(calls,
			named(callClocks, g.whole32("nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return g.device.GetClockInfo(domain.kind) }, mega),
				func(r *device.Readings) *device.Numbers { return &r.Clocks.Frequencies }, domain.name),
			named(callMaxClocks, g.whole32("nvmlDeviceGetMaxClockInfo", func() (uint32, nvml.Return) { return g.device.GetMaxClockInfo(domain.kind) }, mega),
				func(r *device.Readings) *device.Numbers { return &r.Clocks.Limits }, domain.name),
		)
	}
	return append(calls,
		call{name: callThrottleReasons, read: g.throttleReasons},
		number(callPerformanceState, func() (float64, status) {
			if !g.has("nvmlDeviceGetPerformanceState") {
				return 0, statusFunctionNotFound
			}
			state, ret := g.device.GetPerformanceState()
			if ret == nvml.SUCCESS && state == nvml.PSTATE_UNKNOWN {
				return 0, statusNotSupported
			}
			return float64(state), statusOf(ret)
		}, func(r *device.Readings) *device.Number { return &r.Clocks.PerformanceState }),
	)
}

// throttleReasons asks by the newer of two names of the same call.
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

// errorCalls are those about memory errors and what became of them.
func (g *boundGPU) errorCalls() []call {
	calls := []call{
		number(callECC, g.totalErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED), func(r *device.Readings) *device.Number { return &r.ECC.Corrected }),
		number(callECC, g.totalErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED), func(r *device.Readings) *device.Number { return &r.ECC.Uncorrected }),
		{name: callRemappedRows, read: g.remappedRows},
	}
	corrected := func(r *device.Readings) *device.Numbers { return &r.ECC.LifetimeCorrected }
	uncorrected := func(r *device.Readings) *device.Numbers { return &r.ECC.LifetimeUncorrected }
	for _, place := range []struct {
		name string
		kind nvml.MemoryLocation
	}{
		{"device_memory", nvml.MEMORY_LOCATION_DEVICE_MEMORY}, {"l1_cache", nvml.MEMORY_LOCATION_L1_CACHE},
		{"l2_cache", nvml.MEMORY_LOCATION_L2_CACHE}, {"register_file", nvml.MEMORY_LOCATION_REGISTER_FILE},
		{"texture_memory", nvml.MEMORY_LOCATION_TEXTURE_MEMORY}, {"texture_shm", nvml.MEMORY_LOCATION_TEXTURE_SHM},
		{"cbu", nvml.MEMORY_LOCATION_CBU}, {"sram", nvml.MEMORY_LOCATION_SRAM},
	} {
		calls = append(calls,
			named(callECCLifetime, g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, place.kind), corrected, place.name),
			named(callECCLifetime, g.lifetimeErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, place.kind), uncorrected, place.name),
		)
	}
	return calls
}

func (g *boundGPU) totalErrors(kind nvml.MemoryErrorType) func() (float64, status) {
	return func() (float64, status) {
		if !g.has("nvmlDeviceGetTotalEccErrors") {
			return 0, statusFunctionNotFound
		}
		count, ret := g.device.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
		return float64(count), statusOf(ret)
	}
}

func (g *boundGPU) lifetimeErrors(kind nvml.MemoryErrorType, place nvml.MemoryLocation) func() (float64, status) {
	return func() (float64, status) {
		if !g.has("nvmlDeviceGetMemoryErrorCounter") {
			return 0, statusFunctionNotFound
		}
		count, ret := g.device.GetMemoryErrorCounter(kind, nvml.AGGREGATE_ECC, place)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			// A driver says so of a location that is younger than itself.
			return 0, statusNotSupported
		}
		return float64(count), statusOf(ret)
	}
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

// linkCalls are those about PCIe.
func (g *boundGPU) linkCalls() []call {
	throughput := func(counter nvml.PcieUtilCounter) func() (float64, status) {
		// NVML gives kilobytes of 1000 bytes per second.
		return g.whole32("nvmlDeviceGetPcieThroughput", func() (uint32, nvml.Return) { return g.device.GetPcieThroughput(counter) }, 1000)
	}
	received := number(callPCIeThroughput, throughput(nvml.PCIE_UTIL_RX_BYTES), func(r *device.Readings) *device.Number { return &r.PCIe.ReceiveRate })
	transmitted := number(callPCIeThroughput, throughput(nvml.PCIE_UTIL_TX_BYTES), func(r *device.Readings) *device.Number { return &r.PCIe.TransmitRate })
	received.slow, transmitted.slow = true, true
	return []call{
		number(callPCIeGeneration, g.wholeInt("nvmlDeviceGetCurrPcieLinkGeneration", g.device.GetCurrPcieLinkGeneration), func(r *device.Readings) *device.Number { return &r.PCIe.Generation }),
		number(callPCIeGeneration, g.wholeInt("nvmlDeviceGetMaxPcieLinkGeneration", g.device.GetMaxPcieLinkGeneration), func(r *device.Readings) *device.Number { return &r.PCIe.MaxGeneration }),
		number(callPCIeWidth, g.wholeInt("nvmlDeviceGetCurrPcieLinkWidth", g.device.GetCurrPcieLinkWidth), func(r *device.Readings) *device.Number { return &r.PCIe.Width }),
		number(callPCIeWidth, g.wholeInt("nvmlDeviceGetMaxPcieLinkWidth", g.device.GetMaxPcieLinkWidth), func(r *device.Readings) *device.Number { return &r.PCIe.MaxWidth }),
		received, transmitted,
	}
}
