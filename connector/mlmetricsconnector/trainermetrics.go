package mlmetricsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// trainer is a rank whose own metrics show its progress.
type trainer struct {
	training.Rank
	program program
	seen    time.Time
}

// trainingPoints are the points of a resource that show the progress of a trainer
// whose steps may have no spans.
type trainingPoints []training.Point

// read adds the points of a metric. known are the clients that its resource and its
// scope identify.
func (p *trainingPoints) read(known mlattr.System, m pmetric.Metric) {
	reader := mlattr.Default()
	meaning, ok := reader.MetricMeaning(known|reader.Metric(m.Name()), m.Name(), m.Unit())
	if !ok || !meaning.System.Has(mlattr.StepsInMetrics) || !training.Shows(&meaning.Metric) {
		return
	}
	point := training.Point{Metric: m.Name(), Measure: meaning.Measure, Instrument: meaning.Instrument}
	sent := false
	add := func(flags pmetric.DataPointFlags, at pcommon.Timestamp, value float64, count uint64) {
		if !flags.NoRecordedValue() {
			sent = true
			point.Value += value * meaning.Factor
			point.Count += count
			point.At = max(point.At, int64(min(at, maxTime))) // #nosec G115 -- not above maxTime
		}
	}
	switch {
	case meaning.Instrument != mlattr.Histogram:
		point.Delta = m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range mlattr.NumberPoints(m).All() {
			add(one.Flags(), one.Timestamp(), number(one), 0)
			if meaning.Instrument == mlattr.Gauge {
				break // the others are of other things
			}
		}
	case m.Type() == pmetric.MetricTypeHistogram:
		point.Delta = m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range m.Histogram().DataPoints().All() {
			add(one.Flags(), one.Timestamp(), one.Sum(), one.Count())
		}
	case m.Type() == pmetric.MetricTypeExponentialHistogram:
		point.Delta = m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range m.ExponentialHistogram().DataPoints().All() {
			add(one.Flags(), one.Timestamp(), one.Sum(), one.Count())
		}
	}
	if sent {
		*p = append(*p, point)
	}
}

// maxTime is the largest time of a point that is read, in the year 2262.
const maxTime = pcommon.Timestamp(1<<63 - 1)

// noteTraining records what metrics show of a rank's progress.
func (s *seenMetrics) noteTraining(key clockKey, of program, points []training.Point, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.trainers[key]
	if known == nil {
		if len(s.trainers) >= maxClocks {
			return
		}
		known = new(trainer)
		s.trainers[clockKey{key.resource.Clone(), key.run.Clone()}] = known
	}
	known.program, known.seen = of, now
	known.Add(points, now)
}

// trained is what a rank's metrics show since the previous emission.
type trained struct {
	training.Progress
	program program
}

// trained returns the progress of ranks, and forgets those without metrics for
// longer than expiration; 0 forgets none.
func (s *seenMetrics) trained(expiration time.Duration, now time.Time) map[clockKey]trained {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[clockKey]trained, len(s.trainers))
	for key, known := range s.trainers {
		if expiration > 0 && now.Sub(known.seen) > expiration {
			delete(s.trainers, key)
			continue
		}
		all[key] = trained{known.Take(), known.program}
	}
	return all
}

// train adds to the clocks, the losses and the store what the metrics of ranks
// show.
func (c *metricsConnector) train(now time.Time) (over streams.Overflowed) {
	for key, shown := range c.shared.seen.trained(c.cfg.MetricsExpiration, now) {
		clock := c.clocks.known(key)
		if clock == nil {
			if !shown.Changed && len(shown.Values) == 0 {
				continue // it has expired, although its exporter goes on
			}
			if clock = c.clocks.of(key); clock == nil {
				over.Runs++
				continue
			}
		}
		updates, live := clock.train(key, &shown, now)
		if !live || len(updates) == 0 {
			continue
		}
		c.losses.observe(updates, shown.Seen)
		over.Add(c.store.Apply(updates, shown.Seen))
	}
	return over
}

// train adds what the metrics of the rank show, and returns the updates of its
// series. Steps and their times count only if spans show none. live is false for a
// clock that was removed, which adds nothing.
func (c *runClock) train(key clockKey, shown *trained, now time.Time) (updates []streams.Update, live bool) {
	source := key.source()
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
	begun, old := c.attempts.see(sign{number: shown.program.restarts, numbered: shown.program.numbered, start: shown.At}, c.worked, c.ended)
	updates = append(updates, c.begin(key, begun, now)...)
	if old {
		return updates, true
	}
	c.describe(&shown.program)
	c.arrive(shown.Moved)
	c.moved = shown.Moved
	if !c.byMetrics() {
		return updates, true
	}
	at := min(shown.At, now.UnixNano())
	last := updateOf(source, series.LastStepTimestamp, float64(at)/1e9, now)
	last.At = at
	updates = append(updates, last)
	if shown.Steps > 0 {
		updates = append(updates, streams.Update{Source: source, Series: series.Steps, Count: shown.Steps, At: at})
		c.steps += shown.Steps
	}
	c.stepped, c.starts = shown.Moved, false
	for _, seconds := range shown.Times {
		c.compare(&wallclock.Step{Whole: int64(seconds * 1e9), Other: int64(seconds * 1e9)})
	}
	for _, interval := range shown.Worked {
		if interval.End > now.UnixNano()+maxAhead {
			continue
		}
		c.worked = max(c.worked, interval.End)
		c.observeSpan(wallclock.Span{
			Start: interval.Start, End: interval.End, Phase: wallclock.NoPhase, State: wallclock.Productive, Whole: true,
		}, false, now)
	}
	return updates, true
}

// byMetrics reports whether the rank's metrics show its steps, and no spans do, or none
// do any more.
func (c *runClock) byMetrics() bool {
	return !c.moved.IsZero() && (c.spanStepped.IsZero() || c.moved.Sub(c.spanStepped).Nanoseconds() > c.Patience())
}

// numbersOf returns the updates of losses and learning rates.
func numbersOf(source *streams.Source, values []training.Value, now time.Time) (updates []streams.Update) {
	for _, value := range values {
		id, signal, scope := series.LearningRate, "learning_rate", ""
		if value.Measure == mlattr.MeasureLoss {
			id, signal, scope = series.Loss, "loss", mlattr.LossScopeBatch
		}
		u := updateOf(source, id, value.Number, now, scope)
		if number := value.Number; training.Infinite(number) {
			u = streams.Update{Source: source, Series: series.Nonfinite, Count: 1}
			u.Labels[0] = signal
		}
		u.At = min(value.At, now.UnixNano())
		updates = append(updates, u)
	}
	return updates
}
