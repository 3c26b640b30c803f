package gpureceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxMembers bounds the GPUs that are remembered. A host has fewer; only ids
// that change at every reading could reach it.
const maxMembers = 1024

// member is what is remembered about a GPU from one reading to the next.
type member struct {
	// start is when the GPU was first seen. Its first point has the same time
	// and start, which in OpenTelemetry says that the true start is unknown
	// and that a rate is counted from that point on.
	start pcommon.Timestamp
	// seen is when it was last in a snapshot, and identity who it was then.
	seen     time.Time
	identity device.Identity
	counters map[counterKey]*monotonic
}

// counterKey names a counter of a GPU.
type counterKey struct {
	set, name string
}

// roster remembers GPUs by id, also while they are not seen, so that the
// counters of one that comes back go on where they were, and that one that
// vanished is still spoken of.
type roster struct {
	byID map[string]*member
}

func newRoster() *roster {
	return &roster{byID: make(map[string]*member)}
}

// meet returns the member for a GPU that is in a snapshot.
func (r *roster) meet(gpu *device.GPU, now time.Time) *member {
	m, found := r.byID[gpu.ID]
	if !found {
		if len(r.byID) >= maxMembers {
			// Forgetting gives every series a new start, which is allowed at
			// any time.
			clear(r.byID)
		}
		m = &member{start: pcommon.NewTimestampFromTime(now), counters: make(map[counterKey]*monotonic)}
		r.byID[gpu.ID] = m
	}
	m.seen, m.identity = now, gpu.Identity
	return m
}

// count makes every counter of the readings one that never falls.
func (m *member) count(readings *device.Readings) {
	readings.EachCounter(func(set, name string, value float64) float64 {
		key := counterKey{set, name}
		counter := m.counters[key]
		if counter == nil {
			counter = &monotonic{}
			m.counters[key] = counter
		}
		return counter.add(value)
	})
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
