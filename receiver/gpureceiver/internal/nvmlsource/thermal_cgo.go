//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// thermalCalls are the calls about temperatures and fans.
func (g *gpu) thermalCalls(fields *fieldBatch) []call {
	return []call{
		number("temperature", device.GPUTemperature, g.temperature),
		part("memory_temperature", device.MemoryTemperature, sensor(fields.field(nvml.FI_DEV_MEMORY_TEMP, 0, 1))),
		g.temperatureLimit(fields, device.SlowdownTemperature, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN),
		g.temperatureLimit(fields, device.ShutdownTemperature, nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
		g.fansCall(),
	}
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

// fansCall is the call for all fans. It reads their number once.
func (g *gpu) fansCall() call {
	fans := -1
	return call{name: "fans", yields: device.FanSpeeds.Members(), read: func(read *values) (result status) {
		if fans < 0 {
			if fans, result = g.countFans(); result != statusSuccess {
				fans = -1
				return result
			}
		}
		return g.fanSpeeds(fans, read)
	}}
}

// countFans returns the number of fans that can be read, 0 if only their mean
// can. Without the call there is at most one.
func (g *gpu) countFans() (int, status) {
	if !g.has("nvmlDeviceGetFanSpeed_v2") {
		return 0, statusSuccess
	}
	count, result := guarded(g.library, "nvmlDeviceGetNumFans", g.device.GetNumFans)
	switch {
	case result.unsupported():
		return 0, statusSuccess
	case result == statusSuccess && count == 0:
		return 0, statusNotSupported
	}
	return min(count, len(device.FanSpeeds.Members())), result
}

// fanSpeeds reads the fans. The others are still read when one fails.
func (g *gpu) fanSpeeds(count int, read *values) status {
	if count == 0 {
		percentage, result := guarded(g.library, "nvmlDeviceGetFanSpeed", g.device.GetFanSpeed)
		read.add(device.FanSpeeds.Members()[0], float64(percentage)/100)
		return result
	}
	last := nvml.SUCCESS
	for i, fan := range device.FanSpeeds.Members()[:count] {
		percentage, ret := g.device.GetFanSpeed_v2(i)
		if ret == nvml.SUCCESS {
			read.add(fan, float64(percentage)/100)
		} else {
			last = ret
		}
	}
	if len(*read) == 0 || last == nvml.ERROR_GPU_IS_LOST {
		return statusOf(last)
	}
	return statusSuccess
}
