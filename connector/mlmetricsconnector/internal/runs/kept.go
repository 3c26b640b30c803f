package runs

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
)

// Kept is up to where a rank is counted, so that a restart counts nothing of it again.
type Kept struct {
	Key Key
	wallclock.Clock
	// Totals are those since the latest take, Timing is their label.
	Totals wallclock.Totals
	Timing string
	Attempt
	// Worked is the end of its latest span, and Ended that of the latest one of a whole
	// training, or 0.
	Worked, Ended int64
	// Last is when its latest span arrived, Spans whether spans show its steps: both before
	// a restart.
	Last  time.Time
	Spans bool
}

// Keep returns what is known of all ranks.
func (c *Clocks) Keep() (all []Kept) {
	for _, of := range c.live(&Emission{}) {
		of.mu.Lock()
		k := of.Kept
		k.Totals.Steps = slices.Clip(k.Totals.Steps)
		k.Clock = of.Settled(&k.Totals)
		if !of.arrived.IsZero() {
			k.Last, k.Spans = of.arrived, !of.spanStepped.IsZero()
		}
		of.mu.Unlock()
		if k.Attempted > 0 {
			all = append(all, k)
		}
	}
	return all
}

// Restore adds the ranks whose runs are live, at now. Their clocks go on with their next
// spans, and show nothing of their runs before.
func (c *Clocks) Restore(all []Kept, store *streams.Store, now time.Time) {
	for i := range all {
		of := &clock{Kept: all[i]}
		if len(c.byRank) >= maxClocks || !store.Live(of.Key.run()) {
			continue
		}
		of.Least, of.accepted, of.settled = c.limits.Stall.Nanoseconds(), now, of.Cursor
		if of.Spans {
			of.spanStepped = of.Last
		}
		c.byRank[of.Key] = of
	}
}

// KeptMetrics are the newest points of a rank's metrics, and what they have shown.
type KeptMetrics struct {
	Key     Key
	At      time.Time
	Trainer training.Rank
}

// Keep returns what is known of all ranks.
func (m *Metrics) Keep() (all []KeptMetrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, of := range m.all {
		if of.trains() {
			k := KeptMetrics{key, of.trained, of.trainer}
			k.Trainer.Metrics = maps.Clone(k.Trainer.Metrics)
			all = append(all, k)
		}
	}
	return all
}

// Restore adds what Keep returned.
func (m *Metrics) Restore(all []KeptMetrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range all {
		if of := m.of(all[i].Key); of != nil {
			of.trained, of.trainer = all[i].At, all[i].Trainer
		}
	}
}
