package gpureceiver

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/health"
)

// maxTracked bounds the GPUs that are remembered. Only a driver whose ids
// change at every reading can reach it.
const maxTracked = 1024

// trackedGPU is what is remembered about a GPU between readings.
type trackedGPU struct {
	// start is the time of the GPU's first reading. A first point whose time
	// equals its start means in OpenTelemetry that the true start is unknown,
	// and that rates begin at that point.
	start pcommon.Timestamp
	// seen is the time of the last snapshot with the GPU, and identity the
	// GPU's identity in it.
	seen     time.Time
	identity device.Identity
	// present is true if the GPU is in the present snapshot.
	present bool
	// gone is true if the GPU vanished or fell off the bus, and has not come
	// back.
	gone bool
	// state is the health at the last reading, empty while it is unknown.
	state    health.State
	counters map[*device.Quantity]*device.Monotonic
	// seeded is true once the common errors have series.
	seeded bool
	// resource is the GPU's resource, built from description.
	resource    pcommon.Resource
	description description
}

// tracker remembers GPUs by id, also after they vanished: their counters
// continue when they come back, and until then they are reported as failed.
type tracker struct {
	byID map[string]*trackedGPU
}

func newTracker() *tracker {
	return &tracker{byID: make(map[string]*trackedGPU)}
}

// begin begins a reading.
func (r *tracker) begin() {
	for _, m := range r.byID {
		m.present = false
	}
}

// observe returns what is remembered about a GPU of a snapshot, and whether the
// GPU has come back.
func (r *tracker) observe(gpu *device.GPU, now time.Time) (m *trackedGPU, returned bool) {
	m, found := r.byID[gpu.ID]
	if !found {
		r.evictOldest()
		m = &trackedGPU{start: pcommon.NewTimestampFromTime(now), counters: make(map[*device.Quantity]*device.Monotonic)}
		r.byID[gpu.ID] = m
	}
	returned = m.gone && !gpu.Lost
	m.seen, m.identity, m.present, m.gone = now, gpu.Identity, true, gpu.Lost
	return m, returned
}

// evictOldest forgets the GPU that was not seen for the longest time if there
// are too many. If it comes back, its series have a new start, which OpenTelemetry
// allows at any time.
func (r *tracker) evictOldest() {
	if len(r.byID) < maxTracked {
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

// vanished ends a reading in which the driver listed its GPUs. It returns the
// whole GPUs that are missing and were seen within remember, ordered by index.
// A missing MIG device was removed on purpose.
func (r *tracker) vanished(now time.Time, remember time.Duration) []*trackedGPU {
	var missing []*trackedGPU
	for _, m := range r.byID {
		if m.present {
			continue
		}
		m.gone = true
		if m.identity.MIG == nil && now.Sub(m.seen) < remember {
			missing = append(missing, m)
		}
	}
	slices.SortFunc(missing, func(a, b *trackedGPU) int {
		return cmp.Or(cmp.Compare(a.identity.Index, b.identity.Index), cmp.Compare(a.identity.ID, b.identity.ID))
	})
	return missing
}

// updateState updates the health from a reading and recent errors. A suspended GPU
// keeps its state.
func (m *trackedGPU) updateState(gpu *device.GPU, recent []health.Error) {
	if gpu.Asleep {
		return
	}
	m.state = health.Judge(health.Evidence{
		Lost:           gpu.Lost,
		Unresponsive:   gpu.Unresponsive,
		RecoveryAction: device.RecoveryAction.Of(&gpu.Readings),
		RemapPending:   device.RemapPending.Of(&gpu.Readings),
		RemapFailed:    device.RemapFailed.Of(&gpu.Readings),
		Errors:         recent,
	})
}

// count replaces the counters of the readings by counters that never fall.
func (m *trackedGPU) count(readings *device.Readings) {
	readings.EachCounter(func(q *device.Quantity, value float64) float64 {
		counter := m.counters[q]
		if counter == nil {
			counter = &device.Monotonic{}
			m.counters[q] = counter
		}
		return counter.Add(value)
	})
}
