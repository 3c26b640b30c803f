//go:build cgo && linux

package nvmlsource

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// gpmSamples are the two samples of a GPU or GPU instance that are compared.
// The library owns them: they are freed before it is closed, and no C function
// gets one that is not allocated.
type gpmSamples struct {
	// closed is true once the library was closed or the GPU is gone.
	closed atomic.Bool

	// mu is held while the library works with the samples.
	mu          sync.Mutex
	unsupported bool
	// samples are both nil or both allocated.
	samples [2]nvml.GpmSample
	// taken is true if samples[latest] was taken, at the time at.
	taken  bool
	latest int
	at     time.Time
	totals gpmTotals
}

// release frees the samples. If an abandoned call still uses them they are kept,
// because nothing else is safe.
func (s *gpmSamples) release() {
	s.closed.Store(true)
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.free()
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

// allocate makes both samples, or none.
func (s *gpmSamples) allocate(library nvml.Interface) nvml.Return {
	if s.samples[0] != nil {
		return nvml.SUCCESS
	}
	for i := range s.samples {
		sample, ret := library.GpmSampleAlloc()
		if ret != nvml.SUCCESS {
			s.free()
			return ret
		}
		s.samples[i] = sample
	}
	return nvml.SUCCESS
}

// gpmCall is the one call for all metrics of GPM.
func (g *boundGPU) gpmCall() call {
	gpm := call{name: "gpm", read: g.readGPM}
	for _, metric := range gpmMetrics {
		gpm.yields = append(gpm.yields, metric.quantity)
	}
	return gpm
}

// readGPM compares a new sample with that of the last reading.
func (g *boundGPU) readGPM() (func(*device.Readings), status) {
	s := g.gpm
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsupported || s.closed.Load() {
		return nil, statusNotSupported
	}
	if result := g.prepareGPM(s); result != statusSuccess {
		// Support can change only when the driver is opened again.
		s.unsupported = result.unsupported()
		return nil, result
	}
	now := g.now()
	if elapsed := now.Sub(s.at); s.taken && elapsed >= 0 && elapsed < gpmMinGap {
		return s.totals.store(), statusSuccess
	}
	next := 1 - s.latest
	if ret := g.takeGPM(s.samples[next]); ret != nvml.SUCCESS {
		// A GPU does not support it while it is in MIG mode.
		s.taken = false
		return nil, statusOf(ret)
	}
	older, elapsed, first := s.samples[s.latest], now.Sub(s.at), !s.taken
	s.latest, s.at, s.taken = next, now, true
	if first || elapsed <= 0 {
		return func(*device.Readings) {}, statusSuccess
	}
	if s.closed.Load() {
		return nil, statusNotSupported
	}
	values, ret := g.compareGPM(older, s.samples[next])
	if ret != nvml.SUCCESS {
		return nil, statusOf(ret)
	}
	s.totals.add(values, elapsed)
	return s.totals.store(), statusSuccess
}

// prepareGPM checks whether the GPU has GPM, and allocates the samples.
func (g *boundGPU) prepareGPM(s *gpmSamples) status {
	if s.samples[0] != nil {
		return statusSuccess
	}
	take := "nvmlGpmSampleGet"
	if g.parent != nil {
		take = "nvmlGpmMigSampleGet"
	}
	for _, symbol := range []string{take, "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmMetricsGet", "nvmlDeviceGetCudaComputeCapability"} {
		if !g.has(symbol) {
			return statusFunctionNotFound
		}
	}
	major, _, ret := g.whole().device.GetCudaComputeCapability()
	if ret != nvml.SUCCESS {
		return statusOf(ret)
	}
	if major < gpmCapability {
		return statusNotSupported
	}
	return statusOf(s.allocate(g.nvml))
}

// takeGPM fills a sample.
func (g *boundGPU) takeGPM(sample nvml.GpmSample) nvml.Return {
	if g.parent != nil {
		return g.parent.device.GpmMigSampleGet(g.gpuInstance, sample)
	}
	return g.device.GpmSampleGet(sample)
}

// compareGPM returns the metrics between two samples.
func (g *boundGPU) compareGPM(older, newer nvml.GpmSample) ([]gpmValue, nvml.Return) {
	question := nvml.GpmMetricsGetType{NumMetrics: uint32(len(gpmMetrics)), Sample1: older, Sample2: newer}
	for i, metric := range gpmMetrics {
		question.Metrics[i].MetricId = metric.id
	}
	if ret := g.nvml.GpmMetricsGet(&question); ret != nvml.SUCCESS {
		return nil, ret
	}
	values := make([]gpmValue, len(gpmMetrics))
	for i := range values {
		answer := &question.Metrics[i]
		values[i] = gpmValue{metric: gpmMetrics[i], result: statusOf(nvml.Return(answer.NvmlReturn)), value: answer.Value}
	}
	return values, nvml.SUCCESS
}
