//go:build cgo && linux

package nvmlsource

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// activityCalls are the calls about the engines.
func (g *gpu) activityCalls(id string) []call {
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
	return []call{
		g.activity("utilization", device.GeneralEngine, g.buffer(id, nvml.GPU_UTILIZATION_SAMPLES), "nvmlDeviceGetUtilizationRates", general),
		g.activity("encoder_utilization", device.EncoderEngine, g.buffer(id, nvml.ENC_UTILIZATION_SAMPLES), "nvmlDeviceGetEncoderUtilization", current(g.device.GetEncoderUtilization)),
		g.activity("decoder_utilization", device.DecoderEngine, g.buffer(id, nvml.DEC_UTILIZATION_SAMPLES), "nvmlDeviceGetDecoderUtilization", current(g.device.GetDecoderUtilization)),
		g.activity("jpeg_utilization", device.JPEGEngine, g.buffer(id, nvml.JPG_UTILIZATION_SAMPLES), "nvmlDeviceGetJpgUtilization", current(g.device.GetJpgUtilization)),
		g.activity("ofa_utilization", device.OFAEngine, g.buffer(id, nvml.OFA_UTILIZATION_SAMPLES), "nvmlDeviceGetOfaUtilization", current(g.device.GetOfaUtilization)),
		number("memory_controller_utilization", device.MemoryControllerUtilization, whole(g, "nvmlDeviceGetUtilizationRates", controller, 0.01)),
	}
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

// memoryCalls are the calls about memory.
func (g *gpu) memoryCalls() []call {
	return []call{
		g.memoryCall(),
		number("bar1_memory", device.BAR1Used, whole(g, "nvmlDeviceGetBAR1MemoryInfo", func() (uint64, nvml.Return) {
			info, ret := g.device.GetBAR1MemoryInfo()
			return info.Bar1Used, ret
		}, 1)),
	}
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
