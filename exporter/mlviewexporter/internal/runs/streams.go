package runs

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// runStreams are the streams of metrics that name a run.
type runStreams struct {
	// streams are those without durations, Durations those of ml.step.duration, which
	// are most. states are those of the state, whole counts those of other series of the
	// whole run.
	streams, Durations, states []*series.Stream
	whole                      [series.Count]uint16

	// Writers are the collectors of a fleet that have computed series of the run, writer
	// is the one with the newest evidence.
	Writers map[string]*writer
	Writer  string
}

// Attach adds a stream, and reports whether there is room for it.
func (r *runStreams) Attach(one *series.Stream) bool {
	if r.size() >= maxStreamsOfRun {
		return false
	}
	if one.Series == series.StepDuration {
		r.Durations = append(r.Durations, one)
		return true
	}
	if one.Series.OfWholeRun() {
		if r.whole[one.Series] >= maxStreamsOfWhole || one.Series == series.RunState && Severity(one.Labels.Own[0]) <= 0 {
			return false
		}
		r.whole[one.Series]++
	}
	if one.Series == series.RunState {
		r.states = append(r.states, one)
	}
	r.streams = append(r.streams, one)
	return true
}

// size is the number of streams of the run.
func (r *runStreams) size() int { return len(r.streams) + len(r.Durations) }

// Severity orders states as ml_metrics orders those of the ranks of a run. It is
// not positive for anything else.
func Severity(state string) int {
	return slices.Index([]string{"", mlattr.RunEnded, mlattr.RunUnknown, mlattr.RunSilent, mlattr.RunFailed, mlattr.RunRunning, mlattr.RunStalled}, state)
}

const (
	// maxStreamsOfRun limits the streams of a run, maxStreamsOfWhole those of a series
	// that is computed for all of it.
	maxStreamsOfRun   = series.MaxStreams / 8
	maxStreamsOfWhole = 256
)

// writer is what one collector says of a run that several may have computed: when a
// gateway has handed the run over, its series stay for a while, and tell of a run
// that does nothing.
type writer struct {
	// lastStep is when its last step ended, in Unix seconds, moved is when one of its
	// counters changed last, in nanoseconds since 1970.
	lastStep float64
	moved    int64
	Sender   *fleet.Sender
}

// noteWriter notes what a stream says of the collector that has computed it. The
// collector with the newest evidence is the run's writer.
func (r *runStreams) noteWriter(one *series.Stream) {
	if len(r.Writers) == 0 {
		r.Writers, r.Writer = make(map[string]*writer), one.Labels.Collector
	}
	of := shared.Entry(r.Writers, one.Labels.Collector, func() *writer { return new(writer) })
	of.Sender = one.Sender
	switch {
	case one.Series == series.LastStep:
		of.lastStep = max(of.lastStep, one.Value)
	case one.Series.Grows():
		of.moved = max(of.moved, one.Moved)
	default:
		return
	}
	if one.Labels.Collector != r.Writer && of.newer(r.Writers[r.Writer]) {
		r.Writer = one.Labels.Collector
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
	if w.Sender == nil || w.Sender.Interval == 0 {
		return 2 * usualInterval
	}
	return 2 * w.Sender.Interval
}

// Written reports whether the stream is of the collector that has the newest evidence
// of its run. With one collector it is.
func (r *runStreams) Written(one *series.Stream) bool {
	return len(r.Writers) < 2 || one.Labels.Collector == r.Writer
}

// heldElsewhere reports whether another collector than the run's writer sees that the run
// holds GPUs. To the writer, a run that hangs is silent then.
func (r *runStreams) heldElsewhere(now time.Time) bool {
	return len(r.Writers) > 1 && slices.ContainsFunc(r.streams, func(one *series.Stream) bool {
		return one.Series == series.RunGPUs && one.Value > 0 && one.Live(now) && !r.Written(one)
	})
}

// rankWriters returns the collector that has the newest step of each rank, and nil
// with one collector.
func (r *runStreams) rankWriters() map[string]string {
	if len(r.Writers) < 2 {
		return nil
	}
	writers, newest := make(map[string]string), make(map[string]float64)
	for _, one := range r.streams {
		key := rankKey(one.Labels.Rank, one.Labels.Host)
		if one.Series == series.LastStep && one.Value > newest[key] {
			writers[key], newest[key] = one.Labels.Collector, one.Value
		}
	}
	return writers
}

// ofRankWriter reports whether the stream is of the collector that has the newest
// step of its rank, or of its run for a series of the whole run.
func (r *runStreams) ofRankWriter(one *series.Stream, writers map[string]string) bool {
	if one.Series.OfWholeRun() {
		return r.Written(one)
	}
	if of, known := writers[rankKey(one.Labels.Rank, one.Labels.Host)]; known {
		return one.Labels.Collector == of
	}
	return r.Written(one)
}

// stepCount counts the steps or batches of a rank.
type stepCount struct{ count, rate series.Total }

// stepCounts returns the steps and batches of each rank. Each collector counts those that
// it gets, so they add up.
func (r *runStreams) stepCounts(now time.Time) map[series.Key]stepCount {
	counts := make(map[series.Key]stepCount)
	for _, one := range r.streams {
		if one.Series == series.Steps || one.Series == series.Batches {
			key := one.Key
			key.Labels.Collector = ""
			of := counts[key]
			of.count.Add(one.Value)
			of.rate.AddRate(one, now)
			counts[key] = of
		}
	}
	return counts
}

// addSteps adds the steps and batches of a run that several collectors have counted.
func (all *sums) addSteps(r *runStreams, now time.Time) {
	for _, of := range []series.Series{series.Steps, series.Batches} {
		all.totals[of], all.rates[of] = series.Total{}, series.Total{}
	}
	for key, of := range r.stepCounts(now) {
		all.totals[key.Series].Add(of.count.Sum)
		if of.rate.N > 0 {
			all.rates[key.Series].Add(of.rate.Sum)
		}
	}
}

// WholeStep is the ml.phase of the duration of a whole step.
const WholeStep = "step"

// phaseTime is the time of a phase in the last five minutes, of all ranks together.
type phaseTime struct{ sum, steps float64 }

// phaseTimes are the times of the phases of a run, and of its whole step.
type phaseTimes map[string]phaseTime

func (p phaseTimes) add(one *series.Stream, sum, steps float64) {
	t := p[one.Labels.Own[0]]
	p[one.Labels.Own[0]] = phaseTime{t.sum + sum, t.steps + steps}
}

// StepDurations returns the streams of the times of steps and phases. Times of
// the host count where there are some.
func (r *runStreams) StepDurations() iter.Seq[*series.Stream] {
	onHost := slices.ContainsFunc(r.Durations, func(one *series.Stream) bool { return one.Labels.Own[1] != "device" })
	return func(yield func(*series.Stream) bool) {
		for _, one := range r.Durations {
			if (!onHost || one.Labels.Own[1] != "device") && !yield(one) {
				return
			}
		}
	}
}

// Phases returns the phases of the steps of a run, the longest first. The whole step is
// first, also if phases overlap.
func (r *runStreams) Phases(now time.Time) []api.Phase {
	times := make(phaseTimes)
	for one := range r.StepDurations() {
		if sum, steps, ok := one.Increase(now); ok {
			times.add(one, sum, steps)
		}
	}
	rows := times.rows()
	slices.SortFunc(rows, func(a, b api.Phase) int {
		return cmp.Or(api.TrueFirst(a.Phase == WholeStep, b.Phase == WholeStep), comparePhases(a, b))
	})
	return rows
}

// comparePhases orders phases by their time, the longest first.
func comparePhases(a, b api.Phase) int {
	return cmp.Or(cmp.Compare(api.Value(b.SecondsPerStep), api.Value(a.SecondsPerStep)), cmp.Compare(a.Phase, b.Phase))
}

// rows returns the phases.
func (p phaseTimes) rows() (rows []api.Phase) {
	whole, known := p[WholeStep]
	for phase, t := range p {
		row, steps := api.Phase{Phase: phase}, t.steps
		if known {
			steps = whole.steps // not every step has a checkpoint
		}
		if steps > 0 {
			row.SecondsPerStep = api.Finite(t.sum / steps)
		}
		if whole.sum > 0 {
			row.Share = api.Finite(t.sum / whole.sum)
		}
		rows = append(rows, row)
	}
	return rows
}

// TimeRatio returns ml.run.time.ratio.
func (r *runStreams) TimeRatio(now time.Time) map[string]float64 {
	ratio := make(map[string]float64)
	for _, one := range r.streams {
		if one.Series == series.RunTimeRatio && one.Live(now) && r.Written(one) {
			ratio[one.Labels.Own[0]] = one.Value
		}
	}
	return ratio
}
