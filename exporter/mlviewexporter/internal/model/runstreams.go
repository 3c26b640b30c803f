package model

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// runStreams are the streams of metrics that name a run.
type runStreams struct {
	// streams are those without durations, durations those of ml.step.duration, which
	// are most. states are those of the state, ratios those of ml.run.time.ratio, whole
	// counts those of other series of the whole run.
	streams, durations, states, ratios []*stream
	whole                              [seriesCount]uint16

	// writers are the collectors of a fleet that have computed series of the run, writer
	// is the one with the newest evidence.
	writers map[string]*writer
	writer  string
}

// attach adds a stream, and reports whether there is room for it.
func (r *runStreams) attach(one *stream) bool {
	if r.size() >= maxStreamsOfRun {
		return false
	}
	if one.series == StepDuration {
		r.durations = append(r.durations, one)
		return true
	}
	if one.series.ofWholeRun() {
		if r.whole[one.series] >= maxStreamsOfWhole || one.series == RunState && severity(one.labels.Own[0]) <= 0 {
			return false
		}
		r.whole[one.series]++
	}
	switch one.series {
	case RunState:
		r.states = append(r.states, one)
	case RunTimeRatio:
		r.ratios = append(r.ratios, one)
	}
	r.streams = append(r.streams, one)
	return true
}

// size is the number of streams of the run.
func (r *runStreams) size() int { return len(r.streams) + len(r.durations) }

// severity orders states as ml_metrics orders those of the ranks of a run. It is
// not positive for anything else.
func severity(state string) int {
	return slices.Index([]string{"", mlattr.RunEnded, mlattr.RunUnknown, mlattr.RunSilent, mlattr.RunFailed, mlattr.RunRunning, mlattr.RunStalled}, state)
}
