package runs

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// MaxAhead is how far a client's clock may be ahead of the collector's, in
// nanoseconds. Times are compared only with others of the same client, so they
// need not be right. A time further ahead is treated as wrong, because it would
// exclude later ones.
const MaxAhead = int64(time.Hour)

// Metrics is what ranks' own metrics show. It is safe for concurrent use.
type Metrics struct {
	mu  sync.Mutex
	all map[Key]*process
}

// process is what the metrics of one process show.
type process struct {
	// first and last are when they were first and last seen, zero for one without a rank.
	first, last time.Time
	// trainer is its progress, as far as its metrics show it, and trained when they
	// did last.
	trainer training.Rank
	program Program
	trained time.Time
}

// NewMetrics returns Metrics without ranks.
func NewMetrics() *Metrics { return &Metrics{all: make(map[Key]*process)} }

// of returns a process, a new one if it is not known, or nil beyond the limit.
func (m *Metrics) of(key Key) *process {
	known := m.all[key]
	if known == nil && len(m.all) < maxClocks {
		known = new(process)
		m.all[key.clone()] = known
	}
	return known
}

// See records that metrics of a rank's process arrived.
func (m *Metrics) See(key Key, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of := m.of(key); of != nil {
		if of.last = now; of.first.IsZero() {
			of.first = now
		}
	}
}

// Train records what metrics show of a rank's progress.
func (m *Metrics) Train(key Key, program Program, points []training.Point, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of := m.of(key); of != nil {
		of.program, of.trained = program, now
		of.trainer.Add(points, now)
	}
}

// waiting returns the processes of runs with the ids of holders, and when each was first and
// last seen.
func (m *Metrics) waiting(holders map[string]bool, now time.Time) map[Key][2]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := make(map[Key][2]time.Time)
	for key, of := range m.all {
		switch {
		case now.Sub(of.last) > gpus.GoneAfter:
			if of.first, of.last = (time.Time{}), (time.Time{}); of.trained.IsZero() {
				delete(m.all, key)
			}
		case holders[key.Run.ID]:
			waiting[key] = [2]time.Time{of.first, of.last}
		}
	}
	return waiting
}

// trained is what a rank's metrics show since the previous emission.
type trained struct {
	training.Progress
	program Program
}

// trained returns the progress of ranks, and forgets those without metrics for
// longer than expiration; 0 forgets none.
func (m *Metrics) trained(expiration time.Duration, now time.Time) map[Key]trained {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[Key]trained)
	for key, of := range m.all {
		switch {
		case of.trained.IsZero():
		case expiration <= 0 || now.Sub(of.trained) <= expiration:
			all[key] = trained{of.trainer.Take(), of.program}
		case of.last.IsZero():
			delete(m.all, key)
		default:
			of.trainer, of.trained = training.Rank{}, time.Time{}
		}
	}
	return all
}

// Expect creates clocks for ranks that hold GPUs and send metrics, so that a run that
// hangs before its first span has a state. holders are the ids of runs that hold GPUs.
func (c *Clocks) Expect(m *Metrics, holders map[string]bool, now time.Time) {
	for key, seen := range m.waiting(holders, now) {
		if of := c.add(key); of != nil {
			of.expect(seen[0], seen[1])
		}
	}
}

// Train adds to the clocks, the losses and the store what the metrics of ranks
// show. Ranks without metrics for longer than expiration are forgotten; 0 forgets none.
func (c *Clocks) Train(m *Metrics, losses *Losses, store *streams.Store, expiration time.Duration, now time.Time) (over streams.Overflowed) {
	for key, shown := range m.trained(expiration, now) {
		of := c.known(key)
		if of == nil {
			if !shown.Changed && len(shown.Values) == 0 {
				continue // it has expired, although its exporter goes on
			}
			if of = c.add(key); of == nil {
				over.Runs++
				continue
			}
		}
		updates, live := of.train(&shown, now)
		if !live || len(updates) == 0 {
			continue
		}
		losses.Observe(updates, shown.Seen)
		over.Add(store.Apply(updates, shown.Seen))
	}
	return over
}

// train adds what the metrics of the rank show, and returns the updates of its
// series. Steps and their times count only if spans show none. live is false for a
// clock that was removed, which adds nothing.
func (c *clock) train(shown *trained, now time.Time) (updates []streams.Update, live bool) {
	source := c.Key.source()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten {
		return nil, false
	}
	if c.since.IsZero() {
		c.since = shown.First
	}
	c.heard, c.between = shown.Seen, shown.Patience
	updates = numbersOf(source, shown.Values, now)
	if !shown.Changed {
		return updates, true
	}
	begun, old := c.Attempts.see(sign{number: shown.program.Restarts, numbered: shown.program.Numbered, start: shown.At}, c.Worked, c.Ended)
	updates = append(updates, c.begin(begun, now)...)
	if old {
		return updates, true
	}
	c.describe(&shown.program)
	c.arrive(shown.Moved, begun > 0)
	c.moved = shown.Moved
	if !c.byMetrics() {
		return updates, true
	}
	at := min(shown.At, now.UnixNano())
	last := streams.ValueAt(source, series.LastStepTimestamp, float64(at)/1e9, now)
	last.At = at
	updates = append(updates, last)
	if shown.Steps > 0 {
		updates = append(updates, streams.Update{Source: source, Series: series.Steps, Count: shown.Steps, At: at})
		c.steps, c.counted = c.steps+shown.Steps, c.counted+shown.Steps
	}
	c.stepped, c.starts = shown.Moved, false
	for _, seconds := range shown.Times {
		c.compare(&wallclock.Step{Whole: int64(seconds * 1e9), Other: int64(seconds * 1e9)}, c.program.OnDemand)
	}
	for _, interval := range shown.Worked {
		if interval.End > now.UnixNano()+MaxAhead {
			continue
		}
		c.Worked = max(c.Worked, interval.End)
		c.observeSpan(wallclock.Span{
			Start: interval.Start, End: interval.End, Phase: wallclock.NoPhase, State: wallclock.Productive, Whole: true,
		}, false, now)
	}
	return updates, true
}

// byMetrics reports whether the rank's metrics show its steps, and no spans do, or none
// do any more.
func (c *clock) byMetrics() bool {
	return !c.moved.IsZero() && (c.spanStepped.IsZero() || c.moved.Sub(c.spanStepped).Nanoseconds() > c.Patience())
}

// numbersOf returns the updates of losses and learning rates.
func numbersOf(source *streams.Source, values []training.Value, now time.Time) (updates []streams.Update) {
	for _, value := range values {
		id, signal, scope := series.LearningRate, "learning_rate", ""
		if value.Measure == table.MeasureLoss {
			id, signal, scope = series.Loss, "loss", mlattr.LossScopeBatch
		}
		u := streams.ValueAt(source, id, value.Number, now, scope)
		if number := value.Number; training.Infinite(number) {
			u = streams.Update{Source: source, Series: series.Nonfinite, Count: 1}
			u.Labels[0] = signal
		}
		u.At = min(value.At, now.UnixNano())
		updates = append(updates, u)
	}
	return updates
}
