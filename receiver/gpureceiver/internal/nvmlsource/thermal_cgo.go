//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxFans bounds the number of fans that a library can report.
const maxFans = 16

// thermalCalls are the calls about temperatures and fans.
func (g *boundGPU) thermalCalls(fields *fieldBatch) []call {
	return []call{
		number("temperature", device.GPUTemperature, g.temperature),
		part("memory_temperature", device.MemoryTemperature, sensor(fields.field(fieldMemoryTemp, 0, 1))),
		g.temperatureLimit(fields, device.SlowdownTemperature, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN),
		g.temperatureLimit(fields, device.ShutdownTemperature, nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
		g.fansCall(),
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

// signed restores the sign of a temperature, which NVML's older call returns as
// an unsigned number.
func signed(celsius uint32) float64 {
	return float64(int32(celsius))
}

// temperatureLimit is the call for a limit in degrees, which GPUs up to Ampere
// have. Later ones have a field with their distance from the limit, and a wrong
// answer to this call.
func (g *boundGPU) temperatureLimit(fields *fieldBatch, quantity *device.Quantity, kind nvml.TemperatureThresholds) call {
	margin := fieldKey{fieldSlowdownMargin, 0}
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
func (g *boundGPU) fansCall() call {
	fans := -1
	return call{name: "fans", yields: []*device.Quantity{device.FanSpeeds}, read: func() (func(*device.Readings), status) {
		if fans < 0 {
			count, result := g.countFans()
			if result != statusSuccess {
				return nil, result
			}
			fans = count
		}
		return g.fanSpeeds(fans)
	}}
}

// countFans returns the number of fans that can be read, 0 if only their mean
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

// fanSpeeds reads the fans. The others are still read when one fails.
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
