package mlenrichprocessor

import "math"

// reading is one point of a client's counter or histogram.
type reading struct {
	// start and at are its times in nanoseconds; a start of 0 is unknown.
	start, at uint64
	// sum is a counter's value or a histogram's sum, and count the number of
	// values in a histogram.
	sum   float64
	count uint64
	// delta is true where it is about the time from start to at, and not about
	// all since the client began.
	delta bool
	// mean is true for a histogram of rates, of which only the mean is a rate.
	mean bool
}

// newest is the last point of a stream that a rate was made from.
type newest struct {
	at    uint64
	sum   float64
	count uint64
}

const (
	// skipReset is a counter that began again.
	skipReset skip = "counter_reset"
	// skipOutOfOrder is a point that is older than one that came before.
	skipOutOfOrder skip = "out_of_order"
)

// rate is what the stream gained a second since its last point; of a histogram
// of rates it is the mean of those that it gained. There is none for the first
// point of a stream, for one that came twice, and where there is a reason.
func (n *newest) rate(r reading, shortest float64) (rate float64, ok bool, reason skip) {
	if r.at == 0 || !(r.sum >= 0) || math.IsInf(r.sum, 0) {
		return 0, false, skipInvalidValue
	}
	if r.delta {
		return r.own(shortest)
	}
	before := *n
	switch {
	case before.at == 0:
		*n = newest{r.at, r.sum, r.count}
		return 0, false, ""
	case before == newest{r.at, r.sum, r.count}:
		return 0, false, ""
	case r.at <= before.at:
		return 0, false, skipOutOfOrder
	case r.sum < before.sum, r.count < before.count, r.start >= before.at && r.start < r.at:
		*n = newest{r.at, r.sum, r.count}
		return 0, false, skipReset
	}
	gained := reading{start: before.at, at: r.at, sum: r.sum - before.sum, count: r.count - before.count, mean: r.mean}
	rate, ok, reason = gained.own(shortest)
	if reason != skipShortDuration {
		*n = newest{r.at, r.sum, r.count}
	}
	return rate, ok, reason
}

// own is the rate of a point that is about the time from its start.
func (r reading) own(shortest float64) (rate float64, ok bool, reason skip) {
	if r.mean {
		if r.count == 0 {
			return 0, false, ""
		}
		return r.sum / float64(r.count), true, ""
	}
	if r.start == 0 {
		return 0, false, skipInvalidValue
	}
	rate, reason = divide(r.sum, seconds(r.start, r.at), shortest)
	return rate, reason == "", reason
}
