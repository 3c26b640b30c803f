package gpureceiver

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
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
	// present is true for one that is in the present snapshot.
	present bool
	// gone is true for one that vanished, or fell off the bus, and has not
	// come back.
	gone bool
	// state is how it was at the last reading, empty where nothing was known.
	state    health.State
	counters map[*device.Quantity]*monotonic
	// expected is true once its errors have series.
	expected bool
	// resource is what describes it, made of description.
	resource    pcommon.Resource
	description description
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

// begin begins a reading.
func (r *roster) begin() {
	for _, m := range r.byID {
		m.present = false
	}
}

// meet returns the member for a GPU that is in a snapshot, and whether it was
// gone and came back.
func (r *roster) meet(gpu *device.GPU, now time.Time) (m *member, returned bool) {
	m, found := r.byID[gpu.ID]
	if !found {
		r.makeRoom()
		m = &member{start: pcommon.NewTimestampFromTime(now), counters: make(map[*device.Quantity]*monotonic)}
		r.byID[gpu.ID] = m
	}
	returned = m.gone && !gpu.Lost
	m.seen, m.identity, m.present, m.gone = now, gpu.Identity, true, gpu.Lost
	return m, returned
}

// makeRoom forgets the member that was not seen for the longest time if there
// are too many. If it comes back its series have a new start, which is allowed
// at any time.
func (r *roster) makeRoom() {
	if len(r.byID) < maxMembers {
		return
	}
	oldest := ""
	for id, m := range r.byID {
		if oldest == "" || m.seen.Before(r.byID[oldest].seen) {
			oldest = id
		}
	}
	delete(r.byID, oldest)
}

// vanished ends a reading in which the driver listed its GPUs: it returns the
// whole GPUs that were not among them and were seen within a time, in the
// order of their index. A MIG device that is not listed any more was taken
// away on purpose.
func (r *roster) vanished(now time.Time, remember time.Duration) []*member {
	var missing []*member
	for _, m := range r.byID {
		if m.present {
			continue
		}
		m.gone = true
		if m.identity.MIG == nil && now.Sub(m.seen) < remember {
			missing = append(missing, m)
		}
	}
	slices.SortFunc(missing, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.identity.Index, b.identity.Index), cmp.Compare(a.identity.ID, b.identity.ID))
	})
	return missing
}

// judge updates the state from a reading and the codes of recent errors. A GPU
// that sleeps tells nothing, and keeps its state.
func (m *member) judge(gpu *device.GPU, recent []uint64) {
	if gpu.Asleep {
		return
	}
	m.state = health.Judge(health.Evidence{
		Lost:           gpu.Lost,
		Unresponsive:   gpu.Unresponsive,
		RecoveryAction: gpu.Readings.RecoveryAction,
		RemapPending:   gpu.Readings.Repair.RemapPending,
		RemapFailed:    gpu.Readings.Repair.RemapFailed,
		XIDs:           recent,
	})
}

// count makes every counter of the readings one that never falls.
func (m *member) count(readings *device.Readings) {
	readings.EachCounter(func(q *device.Quantity, value float64) float64 {
		counter := m.counters[q]
		if counter == nil {
			counter = &monotonic{}
			m.counters[q] = counter
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
