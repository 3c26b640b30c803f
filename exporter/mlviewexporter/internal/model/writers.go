package model

import (
	"slices"
	"time"
)

// writer is what one collector says of a run that several may have computed: when a
// gateway has handed the run over, its series stay for a while, and tell of a run
// that does nothing.
type writer struct {
	// lastStep is when its last step ended, in Unix seconds, moved is when one of its
	// counters changed last, in nanoseconds since 1970.
	lastStep float64
	moved    int64
	sender   *sender
}

// noteWriter notes what a stream says of the collector that has computed it. The
// collector with the newest evidence is the run's writer.
func (r *runStreams) noteWriter(one *stream) {
	of := r.writers[one.labels.Collector]
	if of == nil {
		if len(r.writers) == 0 {
			r.writers, r.writer = make(map[string]*writer), one.labels.Collector
		}
		of = new(writer)
		r.writers[one.labels.Collector] = of
	}
	of.sender = one.sender
	switch {
	case one.series == LastStep:
		of.lastStep = max(of.lastStep, one.value)
	case definitions[one.series].kind != 0:
		of.moved = max(of.moved, one.moved)
	default:
		return
	}
	if one.labels.Collector != r.writer && of.newer(r.writers[r.writer]) {
		r.writer = one.labels.Collector
	}
}

// newer reports whether the evidence of a collector is newer than that of another
// one: its last step, else its last change. Two collectors that get parts of the same
// run differ by less than their intervals, and the first of them stays the writer.
func (w *writer) newer(other *writer) bool {
	if other == nil {
		return true
	}
	margin := max(w.margin(), other.margin())
	if w.lastStep > 0 || other.lastStep > 0 {
		return w.lastStep-other.lastStep > margin.Seconds()
	}
	return time.Duration(w.moved-other.moved) > margin
}

// usualInterval is the default flush_interval of ml_metrics.
const usualInterval = 15 * time.Second

// margin is how old evidence may be because it is sent at intervals.
func (w *writer) margin() time.Duration {
	if w.sender == nil || w.sender.Interval == 0 {
		return 2 * usualInterval
	}
	return 2 * w.sender.Interval
}

// written reports whether the stream is of the collector that has the newest evidence
// of its run. With one collector it is.
func (r *runStreams) written(one *stream) bool {
	return len(r.writers) < 2 || one.labels.Collector == r.writer
}

// heldElsewhere reports whether another collector than the run's writer sees that the run
// holds GPUs. To the writer, a run that hangs is silent then.
func (r *runStreams) heldElsewhere(now time.Time) bool {
	return len(r.writers) > 1 && slices.ContainsFunc(r.streams, func(one *stream) bool {
		return one.series == RunGPUs && one.value > 0 && one.live(now) && !r.written(one)
	})
}

// rankWriters returns the collector that has the newest step of each rank, and nil
// with one collector.
func (r *runStreams) rankWriters() map[string]string {
	if len(r.writers) < 2 {
		return nil
	}
	writers, newest := make(map[string]string), make(map[string]float64)
	for _, one := range r.streams {
		key := rankKey(one.labels.Rank, one.labels.Host)
		if one.series == LastStep && one.value > newest[key] {
			writers[key], newest[key] = one.labels.Collector, one.value
		}
	}
	return writers
}

// ofRankWriter reports whether the stream is of the collector that has the newest
// step of its rank, or of its run for a series of the whole run.
func (r *runStreams) ofRankWriter(one *stream, writers map[string]string) bool {
	if writers == nil {
		return true
	}
	if one.series.ofWholeRun() {
		return r.written(one)
	}
	if of, known := writers[rankKey(one.labels.Rank, one.labels.Host)]; known {
		return one.labels.Collector == of
	}
	return r.written(one)
}

// stepCounters returns the streams that count the steps and batches of each rank. Each
// collector counts those that it gets, so they add up.
func (r *runStreams) stepCounters() map[streamKey][]*stream {
	counters := make(map[streamKey][]*stream)
	for _, one := range r.streams {
		if one.series == Steps || one.series == Batches {
			key := one.streamKey
			key.labels.Collector = ""
			counters[key] = append(counters[key], one)
		}
	}
	return counters
}

// addSteps adds the steps and batches of a run that several collectors have counted.
func (all *sums) addSteps(r *runStreams, now time.Time) {
	all.steps, all.stepRate, all.batches, all.batchRate = total{}, total{}, total{}, total{}
	for key, counters := range r.stepCounters() {
		var count, rate total
		for _, one := range counters {
			count.add(one.value)
			rate.addRate(one, now)
		}
		counts, rates := &all.steps, &all.stepRate
		if key.series == Batches {
			counts, rates = &all.batches, &all.batchRate
		}
		counts.add(count.sum)
		if rate.n > 0 {
			rates.add(rate.sum)
		}
	}
}
