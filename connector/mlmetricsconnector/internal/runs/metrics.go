package runs

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// MaxAhead is how far a client's clock may be ahead of the collector's, in
// nanoseconds. Times are compared only with others of the same client, so they
// need not be right. A time further ahead is treated as wrong, because it would
// exclude later ones.
const MaxAhead = int64(time.Hour)

// Metrics is what ranks' own metrics show. The zero value is ready for use. It is safe for
// concurrent use.
type Metrics struct {
	mu  sync.Mutex
	all map[Key]*process
}

// process is what the metrics of one process show.
type process struct {
	// first and last are when they were first and last seen, zero for one without a rank.
	first, last time.Time
	// trainer is its progress, as far as its metrics show it.
	trainer training.Rank
	program Program
}

// of returns a process, a new one if it is not known, or nil beyond the limit.
func (m *Metrics) of(key Key) *process { return shared.Bounded(&m.all, key, maxClocks, Key.clone) }

// See records metrics of a process, and what points of them show of its progress.
func (m *Metrics) See(key Key, program Program, points []training.Point, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of(key)
	if of == nil {
		return
	}
	if key.Run.Rank != "" {
		of.first, of.last = cmp.Or(of.first, now), now
	}
	if len(points) > 0 {
		of.program = program
		of.trainer.Add(points, now)
	}
}

// trains reports whether they show progress.
func (p *process) trains() bool { return !p.trainer.Pending.Seen.IsZero() }

// shown is what a rank's metrics show since the previous emission. Its first and last are
// zero unless its run holds a GPU.
type shown struct {
	process
	training.Progress
}

// take returns what the metrics of ranks show, and forgets those without any for
// gpus.GoneAfter, and those of trainers for longer than expiration; 0 forgets none.
func (m *Metrics) take(holders map[string]bool, expiration time.Duration, now time.Time) map[Key]shown {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[Key]shown)
	for key, of := range m.all {
		if now.Sub(of.last) > gpus.GoneAfter {
			of.first, of.last = time.Time{}, time.Time{}
		}
		if expiration > 0 && now.Sub(of.trainer.Pending.Seen) > expiration {
			of.trainer = training.Rank{}
		}
		if of.last.IsZero() && !of.trains() {
			delete(m.all, key)
			continue
		}
		is := shown{*of, of.trainer.Take()}
		if !holders[key.Run.ID] {
			is.first, is.last = time.Time{}, time.Time{}
		}
		all[key] = is
	}
	return all
}

// Read adds to the clocks, the losses and the store what the metrics of ranks show. A rank
// whose run is one of holders, which hold GPUs, gets a clock, so that a run that hangs
// before its first span has a state.
func (c *Clocks) Read(m *Metrics, holders map[string]bool, losses *Losses, store *streams.Store, expiration time.Duration, now time.Time) {
	for key, is := range m.take(holders, expiration, now) {
		of := c.known(key)
		if of == nil {
			if is.last.IsZero() && !is.Changed && len(is.Values) == 0 {
				continue // it has expired, although its exporter goes on
			}
			if of = c.add(key); of == nil {
				if is.trains() {
					store.Overflowed.Runs.Add(1)
				}
				continue
			}
		}
		updates := of.train(&is, now)
		losses.Observe(updates, is.Seen)
		store.Apply(updates, is.Seen)
	}
}

// train adds what the metrics of the rank show, and returns the updates of its
// series. Steps and their times count only if spans show none. A clock that was removed adds
// nothing.
func (c *clock) train(is *shown, now time.Time) (updates []streams.Update) {
	source := c.Key.source()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten {
		return nil
	}
	c.heard = cmp.Or(is.last, c.heard)
	if is.trains() {
		c.heard, c.between = is.Seen, is.Patience
	}
	if c.since.IsZero() && !c.heard.IsZero() {
		c.since = cmp.Or(is.first, is.First)
	}
	updates = numbersOf(source, is.Values, now)
	if !is.Changed {
		return updates
	}
	begun, old := c.Attempts.see(&Span{Program: is.program, Time: wallclock.Span{Start: is.At}}, c.Worked, c.Ended)
	updates = append(updates, c.begin(begun, now)...)
	if old {
		return updates
	}
	c.describe(&is.program)
	c.arrive(is.Moved, begun > 0)
	c.moved = is.Moved
	if !c.byMetrics() {
		return updates
	}
	at := min(is.At, now.UnixNano())
	last := streams.ValueAt(source, series.LastStepTimestamp, float64(at)/1e9, now)
	last.At = at
	updates = append(updates, last)
	if is.Steps > 0 {
		updates = append(updates, streams.Update{Source: source, Series: series.Steps, Count: is.Steps, At: at})
		c.steps, c.counted = c.steps+is.Steps, c.counted+is.Steps
	}
	c.stepped, c.starts = is.Moved, false
	for _, seconds := range is.Times {
		step := wallclock.Step{Whole: int64(seconds * 1e9)}
		step.Phases[wallclock.NoPhase] = step.Whole
		c.compare(step, c.program.OnDemand)
	}
	for _, interval := range is.Worked {
		if interval.End > now.UnixNano()+MaxAhead {
			continue
		}
		c.Worked = max(c.Worked, interval.End)
		c.observeSpan(wallclock.Span{
			Start: interval.Start, End: interval.End, Phase: wallclock.NoPhase, State: wallclock.Productive, Whole: true,
		}, false, now)
	}
	return updates
}

// byMetrics reports whether the rank's metrics show its steps, and no spans do, or none
// do any more.
func (c *clock) byMetrics() bool {
	return !c.moved.IsZero() && (c.spanStepped.IsZero() || c.moved.Sub(c.spanStepped).Nanoseconds() > c.Patience())
}

// numbersOf returns the updates of losses, learning rates and norms of gradients.
func numbersOf(source *streams.Source, values []training.Value, now time.Time) (updates []streams.Update) {
	for _, value := range values {
		id, signal, scope := series.LearningRate, "learning_rate", ""
		switch value.Measure {
		case table.MeasureLoss:
			id, signal, scope = series.Loss, "loss", mlattr.LossScopeBatch
		case table.MeasureGradientNorm:
			id, signal = series.GradientNorm, "gradient_norm"
		}
		u := streams.ValueAt(source, id, value.Number, now, scope)
		if training.Infinite(value.Number) {
			u = streams.Update{Source: source, Series: series.Nonfinite, Count: 1, Labels: [series.MaxLabels]string{signal}}
		}
		u.At = min(value.At, now.UnixNano())
		updates = append(updates, u)
	}
	return updates
}

// KeptMetrics are the newest points of a rank's metrics, and what they have shown.
type KeptMetrics struct {
	Key     Key
	Trainer training.Rank
}

// Keep returns what is known of all ranks.
func (m *Metrics) Keep() (all []KeptMetrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, of := range m.all {
		if of.trains() {
			k := KeptMetrics{key, of.trainer}
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
			of.trainer = all[i].Trainer
		}
	}
}
