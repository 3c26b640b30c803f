package rule

import "slices"

const (
	// remembered is how many of the newest durations a Durations compares with.
	remembered = 512
	// enoughForMedian is how many durations there must be before one is slow by
	// comparison with their median.
	enoughForMedian = 20
)

// Durations has the newest durations of units that are compared with each other.
// The zero Durations is ready to use. It is not safe for concurrent use.
type Durations struct {
	newest []float64
	sorted []float64
	next   int
}

// Slow reports whether a duration is above the quantile of those that were added, or
// above times their median. Without enough durations to say so it returns false. A
// quantile or a factor of 0 is not compared.
func (d *Durations) Slow(duration, quantile, times float64) (slow bool) {
	n := len(d.sorted)
	if quantile > 0 && float64(n)*(1-quantile) >= 1 {
		slow = duration > d.sorted[min(int(quantile*float64(n)), n-1)]
	}
	if times > 0 && n >= enoughForMedian {
		slow = slow || duration > times*d.Median()
	}
	return slow
}

// Median returns the median, or 0 without durations.
func (d *Durations) Median() float64 {
	if len(d.sorted) == 0 {
		return 0
	}
	return d.sorted[len(d.sorted)/2]
}

// Add adds a duration. It replaces the oldest if there are enough.
func (d *Durations) Add(duration float64) {
	at, _ := slices.BinarySearch(d.sorted, duration)
	if len(d.newest) < remembered {
		d.newest = append(d.newest, duration)
		d.sorted = slices.Insert(d.sorted, at, duration)
		return
	}
	old, _ := slices.BinarySearch(d.sorted, d.newest[d.next])
	d.newest[d.next] = duration
	d.next = (d.next + 1) % remembered
	if at > old {
		at--
		copy(d.sorted[old:at], d.sorted[old+1:])
	} else {
		copy(d.sorted[at+1:old+1], d.sorted[at:])
	}
	d.sorted[at] = duration
}
