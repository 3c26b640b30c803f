package nvmlsource

// sample is one of the measurements that the driver takes by itself, several
// a second, and keeps for some seconds.
type sample struct {
	// time is in microseconds, 0 for an entry of the buffer that is not used.
	time uint64
	// percent is 0 to 100.
	percent uint32
}

// meanSince returns the mean of the samples after a time, 0 to 1, and the time
// of the last of them. It reports false where there is none. Samples that
// cannot be true are left out.
func meanSince(samples []sample, since uint64) (mean float64, last uint64, found bool) {
	var sum, count uint64
	last = since
	for _, s := range samples {
		if s.time <= since || s.percent > 100 {
			continue
		}
		sum += uint64(s.percent)
		count++
		last = max(last, s.time)
	}
	if count == 0 {
		return 0, since, false
	}
	return float64(sum) / float64(count) / 100, last, true
}
