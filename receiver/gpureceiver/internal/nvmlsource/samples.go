package nvmlsource

import (
	"cmp"
	"slices"
)

// maxSampleGap is the longest time in microseconds that one sample covers. NVML's
// sample periods are at most a second. A longer gap means that the driver
// overwrote its buffer or took no samples.
const maxSampleGap = 1_500_000

// sample is one of the driver's own measurements. It takes several a second and
// keeps them for some seconds.
type sample struct {
	// time is in microseconds, 0 for an unused entry of the buffer.
	time uint64
	// value is in the unit of the buffer: percent or milliwatts.
	value float64
}

// sampleSummary summarises the samples since the last reading.
type sampleSummary struct {
	mean, peak float64
	// integral is the sum of each sample times the time that it covers, in the
	// buffer's unit times seconds.
	integral float64
	// impossible is the number of impossible samples, each counted once.
	impossible int
}

// sampleHistory is the state of reading one of the driver's buffers.
type sampleHistory struct {
	// last is the time of the last counted sample, 0 before the first.
	last uint64
	// total is the integral since the first reading.
	total float64
	// impossible is the time of the last impossible sample.
	impossible uint64
	// stale is true if the last reading had no new samples, which also happens
	// when the driver's clock is set back.
	stale bool
}

// since is the time after which to read samples. After a reading without new
// samples it is 0, which means all.
func (h *sampleHistory) since() uint64 {
	if h.stale {
		return 0
	}
	return h.last
}

// started reports whether there was a sample, so that total is known.
func (h *sampleHistory) started() bool { return h.last != 0 }

// add counts the new samples, and reports whether there are any. It leaves out
// unused entries and impossible values. The samples of the first reading give a
// mean and a peak, and no integral, because the integral begins there.
func (h *sampleHistory) add(samples []sample, highest float64) (sampleSummary, bool) {
	valid, counted := samples[:0], max(h.last, h.impossible)
	impossible := 0
	for _, s := range samples {
		switch {
		case s.time == 0:
		case s.value >= 0 && s.value <= highest:
			valid = append(valid, s)
		case s.time > counted:
			impossible++
			h.impossible = max(h.impossible, s.time)
		}
	}
	slices.SortFunc(valid, func(a, b sample) int { return cmp.Compare(a.time, b.time) })
	if n := len(valid); n > 0 && h.stale && valid[n-1].time < h.last {
		// The clock was set back, and a part of the buffer was counted before,
		// so that the integral continues after these samples.
		h.last = 0
	}

	summary := sampleSummary{impossible: impossible}
	var sum float64
	var count int
	first, previous := h.last == 0, h.last
	for _, s := range valid {
		if s.time <= previous {
			continue
		}
		if gap := s.time - previous; !first && gap <= maxSampleGap {
			summary.integral += s.value * float64(gap) / 1e6
		}
		sum += s.value
		summary.peak = max(summary.peak, s.value)
		count++
		previous = s.time
	}
	h.stale = count == 0
	if count == 0 {
		return summary, false
	}
	h.last = previous
	h.total += summary.integral
	summary.mean = sum / float64(count)
	return summary, true
}
