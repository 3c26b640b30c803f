package main

import "time"

// rateWindow is the time range of a rate. It is longer than the refresh
// interval, because pipelines send metrics in batches: between two refreshes a
// steady counter may stand still and then jump.
const rateWindow = 20 * time.Second

// history holds the scrapes of the last rateWindow, oldest first.
type history struct {
	scrapes []*scrape
}

// add appends a scrape and removes those older than the window. If the clock
// went back, the history restarts.
func (h *history) add(s *scrape) {
	if n := len(h.scrapes); n > 0 && !s.at.After(h.scrapes[n-1].at) {
		h.scrapes = nil
	}
	h.scrapes = append(h.scrapes, s)
	for len(h.scrapes) > 0 && s.at.Sub(h.scrapes[0].at) > rateWindow {
		h.scrapes = h.scrapes[1:]
	}
}

// latest returns the newest scrape, or nil where there is none.
func (h *history) latest() *scrape {
	if len(h.scrapes) == 0 {
		return nil
	}
	return h.scrapes[len(h.scrapes)-1]
}

// increase returns the growth of a counter within the window and the time
// between the scrapes. It uses scrapes since the series began or was last
// reset, and needs at least two.
func (h *history) increase(name, id string) (delta float64, over time.Duration, ok bool) {
	last := len(h.scrapes) - 1
	if last < 1 {
		return 0, 0, false
	}
	newest, ok := h.scrapes[last].families[name][id]
	if !ok {
		return 0, 0, false
	}
	first, oldest := last, newest
	for i := last - 1; i >= 0; i-- {
		earlier, present := h.scrapes[i].families[name][id]
		if !present || earlier.value > oldest.value {
			break
		}
		first, oldest = i, earlier
	}
	if first == last {
		return 0, 0, false
	}
	return newest.value - oldest.value, h.scrapes[last].at.Sub(h.scrapes[first].at), true
}

// rate returns a counter's growth per second.
func (h *history) rate(name, id string) reading {
	delta, over, ok := h.increase(name, id)
	if !ok || over <= 0 {
		return reading{}
	}
	return known(delta / over.Seconds())
}

// newObservations returns the growth of a histogram's sum and count within the
// window, both or neither.
func (h *history) newObservations(name, id string) (sum, count reading) {
	grown, _, okSum := h.increase(name+"_sum", id)
	more, _, okCount := h.increase(name+"_count", id)
	if !okSum || !okCount {
		return reading{}, reading{}
	}
	return known(grown), known(more)
}

// reading is a number that may be missing.
type reading struct {
	value float64
	known bool
}

func known(value float64) reading { return reading{value: value, known: true} }

// plus adds two readings; a missing one counts as 0 unless both are missing.
func (r reading) plus(other reading) reading {
	switch {
	case !r.known:
		return other
	case !other.known:
		return r
	default:
		return known(r.value + other.value)
	}
}

// mean is the arithmetic mean of the known readings.
type mean struct {
	sum   float64
	count int
}

func (m *mean) add(r reading) {
	if r.known {
		m.sum += r.value
		m.count++
	}
}

func (m *mean) reading() reading {
	if m.count == 0 {
		return reading{}
	}
	return known(m.sum / float64(m.count))
}
