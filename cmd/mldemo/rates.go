package main

import "time"

// rateWindow is how far back a rate looks. It is longer than the demo's
// refresh, because the collector's pipelines hand metrics on in batches:
// between two refreshes a steady counter may stand still and then jump.
const rateWindow = 20 * time.Second

// history holds the scrapes of the last rateWindow, oldest first.
type history struct {
	scrapes []*scrape
}

// add appends a scrape and forgets those that are older than the window. A
// scrape that is not later than the newest one (the clock went back) starts
// the history anew.
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

// increase returns by how much a counter grew within the window, and over
// which time by the scrapes' clock. It looks at scrapes since the series
// began or was last reset: a single one of those gives nothing, because what
// happened before it is not known.
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

// newObservations returns what a histogram observed within the window: the
// growth of its sum and of its count, both or neither.
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

// plus adds two readings, of which a missing one says nothing.
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

// mean accumulates an arithmetic mean of the readings that are known.
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
