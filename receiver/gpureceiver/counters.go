package gpureceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxCounters bounds the GPUs whose counters are remembered. A host has fewer;
// only ids that change at every reading could reach it.
const maxCounters = 1024

// counter is what is remembered about a GPU so that its counters are proper
// ones.
type counter struct {
	// start is when the GPU was first seen. Its first point has the same time
	// and start, which in OpenTelemetry says that the true start is unknown
	// and that a rate is counted from that point on.
	start  pcommon.Timestamp
	energy monotonic
}

// counters remembers GPUs by id, also while they are not seen, so that one
// that comes back goes on where it was.
type counters struct {
	byID map[string]*counter
}

func newCounters() *counters {
	return &counters{byID: make(map[string]*counter)}
}

// of returns the counter of the GPU with this id, which was first seen now if
// it is new.
func (c *counters) of(id string, now pcommon.Timestamp) *counter {
	if known, found := c.byID[id]; found {
		return known
	}
	if len(c.byID) >= maxCounters {
		// Forgetting gives every series a new start, which is allowed at any
		// time.
		clear(c.byID)
	}
	added := &counter{start: now}
	c.byID[id] = added
	return added
}

// monotonic makes a series that never falls of a hardware counter that begins
// again at zero whenever the driver is loaded.
type monotonic struct {
	base, last float64
}

// add takes the counter's present value and returns the series' value.
func (m *monotonic) add(value float64) float64 {
	if value < m.last {
		m.base += m.last
	}
	m.last = value
	return m.base + value
}
