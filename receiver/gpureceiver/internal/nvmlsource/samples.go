package nvmlsource

import (
	"cmp"
	"slices"
)

// maxSampleGap is the longest time, in microseconds, that one sample can stand
// for. NVML's sample periods are at most a second. A longer gap means that the
// driver's buffer was overwritten or that it took no samples.
const maxSampleGap = 1_500_000

// sample is one of the measurements that the driver takes by itself, several
// a second, and keeps for some seconds.
type sample struct {
	// time is in microseconds, 0 for an entry of the buffer that is not used.
	time uint64
	// value is in the unit of the buffer: percent or milliwatts.
	value float64
}

// sampleSummary is what the samples since the last reading say.
type sampleSummary struct {
	mean, peak float64
	// integral is the sum of each sample times the time it stands for, in the
	// buffer's unit times seconds.
	integral float64
	// impossible is the number of samples that cannot be true, each counted at
	// the reading that saw it first.
	impossible int
}

// sampleHistory remembers what was read of one of the driver's buffers.
type sampleHistory struct {
	// last is the time of the last sample that was counted, 0 before there
	// was any.
	last uint64
	// total is the integral since the first reading.
	total float64
	// impossible is the time of the last sample that cannot be true.
	impossible uint64
	// stale is true if the last reading had nothing new, which is also so
	// when the driver's clock was set back.
	stale bool
}

// since is the time that the driver is to be asked from. After a reading
// without anything new it is asked for all.
func (h *sampleHistory) since() uint64 {
	if h.stale {
		return 0
	}
	return h.last
}

// started reports whether there was any sample yet, so that total is known.
func (h *sampleHistory) started() bool {
	return h.last != 0
}

// add counts the samples that are new, and reports whether there are any.
// Entries that are not used and those above the highest possible value are
// left out. The samples of the first reading give a mean and a peak of what
// the driver still has, and no integral, because that begins with it.
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
		// The clock was set back. What is in the buffer was counted in part,
		// so that the integral begins again after it.
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
