//go:build cgo && linux

package nvmlsource

import (
	"cmp"
	"maps"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

const (
	// gpmCapability is the first major compute capability with GPM. The
	// library's own call for that is not reliable.
	gpmCapability = 9
	// gpmMinGap is the least time between two samples that GPM can compare.
	gpmMinGap = 100 * time.Millisecond
)

// gpmSamples are the two samples of a GPU or GPU instance that are compared.
// The library owns them: they are freed before it is closed, and no C function
// gets one that is not allocated. No call about the GPU runs while they are freed: the
// library is not closed while a call hangs.
type gpmSamples struct {
	unsupported bool
	// samples are both nil or both allocated.
	samples [2]nvml.GpmSample
	// taken is true if samples[latest] was taken, at the time at.
	taken  bool
	latest int
	at     time.Time
	totals gpmTotals
}

// free frees both samples.
func (s *gpmSamples) free() {
	for i, sample := range s.samples {
		if sample != nil {
			// There is nothing to do about an error.
			_ = sample.Free()
		}
		s.samples[i] = nil
	}
	s.taken = false
}

// gpmTotals has the last values of GPM, and the totals of its rates.
type gpmTotals map[*device.Quantity]float64

// add adds the metrics between two samples.
func (t gpmTotals) add(metrics []nvml.GpmMetric, elapsed time.Duration) {
	maps.DeleteFunc(t, func(q *device.Quantity, _ float64) bool { return !q.Counter })
	for _, m := range metrics {
		quantity := gpmMetrics[nvml.GpmMetricId(m.MetricId)]
		switch {
		case nvml.Return(m.NvmlReturn) != nvml.SUCCESS || math.IsNaN(m.Value) || math.IsInf(m.Value, 0) || m.Value < 0:
		case quantity.Counter:
			t[quantity] += m.Value * mebibyte * elapsed.Seconds()
		default:
			t[quantity] = gpmRatio(m.Value)
		}
	}
}

// gpmRatio is a percentage as a ratio. A percentage just above 100 is 1,
// because it is a rounding error.
func gpmRatio(percentage float64) float64 {
	if percentage > 100 && percentage < 101 {
		return 1
	}
	return percentage / 100
}

// store reads the values.
func (t gpmTotals) store(read *values) status {
	for quantity, number := range t {
		read.add(quantity, number)
	}
	return statusSuccess
}

// readGPM compares a new sample with that of the last reading.
func (g *gpu) readGPM(read *values) status {
	s := g.gpm
	if s.unsupported {
		return statusNotSupported
	}
	if result := g.prepareGPM(s); result != statusSuccess {
		// Support can change only when the driver is opened again.
		s.unsupported = result.unsupported()
		return result
	}
	now := g.now()
	if elapsed := now.Sub(s.at); s.taken && elapsed >= 0 && elapsed < gpmMinGap {
		return s.totals.store(read)
	}
	next := 1 - s.latest
	if ret := g.takeGPM(s.samples[next]); ret != nvml.SUCCESS {
		// A GPU does not support it while it is in MIG mode.
		s.taken = false
		return statusOf(ret)
	}
	older, elapsed, first := s.samples[s.latest], now.Sub(s.at), !s.taken
	s.latest, s.at, s.taken = next, now, true
	if first || elapsed <= 0 {
		return statusSuccess
	}
	compared := nvml.GpmMetricsGetType{Sample1: older, Sample2: s.samples[next]}
	for id := range gpmMetrics {
		compared.Metrics[compared.NumMetrics].MetricId = uint32(id)
		compared.NumMetrics++
	}
	if ret := g.nvml.GpmMetricsGet(&compared); ret != nvml.SUCCESS {
		return statusOf(ret)
	}
	s.totals.add(compared.Metrics[:len(gpmMetrics)], elapsed)
	return s.totals.store(read)
}

// prepareGPM checks whether the GPU has GPM, and allocates the samples.
func (g *gpu) prepareGPM(s *gpmSamples) status {
	if s.samples[0] != nil {
		return statusSuccess
	}
	take := "nvmlGpmSampleGet"
	if g.parent != nil {
		take = "nvmlGpmMigSampleGet"
	}
	if !g.hasAll(take, "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmMetricsGet", "nvmlDeviceGetCudaComputeCapability") {
		return statusFunctionNotFound
	}
	major, _, ret := cmp.Or(g.parent, g).device.GetCudaComputeCapability()
	if ret != nvml.SUCCESS {
		return statusOf(ret)
	}
	if major < gpmCapability {
		return statusNotSupported
	}
	s.totals = make(gpmTotals, len(gpmMetrics))
	for i := range s.samples {
		sample, ret := g.nvml.GpmSampleAlloc()
		if ret != nvml.SUCCESS {
			s.free()
			return statusOf(ret)
		}
		s.samples[i] = sample
	}
	return statusSuccess
}

// takeGPM fills a sample.
func (g *gpu) takeGPM(sample nvml.GpmSample) nvml.Return {
	if g.parent != nil {
		return g.parent.device.GpmMigSampleGet(g.gpuInstance, sample)
	}
	return g.device.GpmSampleGet(sample)
}
