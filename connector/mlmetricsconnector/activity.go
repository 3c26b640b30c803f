package mlmetricsconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxAhead is by how much a client's clock may be ahead of the collector's, in
// nanoseconds. The times of one client are compared with each other alone, so
// that they need not be right; one that is further ahead than this is taken for
// broken and would keep later ones out.
const maxAhead = int64(time.Hour)

// ownTime is a time as the client has it, in nanoseconds since 1970; now where
// it is too far ahead.
func ownTime(at pcommon.Timestamp, now int64) int64 {
	if uint64(at) > uint64(now+maxAhead) {
		return now
	}
	return int64(at) // #nosec G115 -- not above now
}

// attrProcessStart is when a process began, as resource detectors say it.
const attrProcessStart = "process.creation.time"

var (
	slotAttempt = mlattr.SlotOf(mlattr.RunAttempt)
	slotStep    = mlattr.SlotOf(mlattr.Step)
)

// program is what a resource shows of how its client tells the time of a run.
type program struct {
	// born is when the process of a run began, and 0 where nobody says it.
	born int64
	// idles is true where a moment without a span is one without work.
	idles bool
	// noStartup is true where what comes before the first productive moment
	// may be something else.
	noStartup bool
	// restarts is the launcher's count of restarts, numbered whether there is
	// one.
	restarts int64
	numbered bool
}

// programOf reads a resource. Where a client's first span is no startup, only
// the start of its process tells that, unless the process serves many runs.
func programOf(facts *mlattr.Facts, attrs pcommon.Map) program {
	p := program{
		idles:     facts.Systems.Has(mlattr.IdlesBetweenSpans),
		noStartup: facts.Systems.Has(mlattr.NoStartup),
	}
	p.restarts, p.numbered = facts.IntAt(slotAttempt)
	if facts.Systems.Has(mlattr.ManyRuns) {
		return p
	}
	if start, ok := attrs.Get(attrProcessStart); ok {
		if at, err := time.Parse(time.RFC3339Nano, start.Str()); err == nil && at.Unix() > 0 && at.Year() < 2200 {
			p.born, p.noStartup = at.UnixNano(), false
		}
	}
	return p
}

// activity is what a span shows of the time of its run.
type activity struct {
	program
	// timed is true where span times something.
	timed bool
	// span has the client's own times, also where it times nothing.
	span wallclock.Span
	// endsRun is true for the span of the whole training, which ends with it.
	endsRun bool
	// step is the number of the step within the run, and 0 where nobody numbers
	// the steps so.
	step int64
	// oneTrace is true where the client has one trace for the life of a process.
	oneTrace bool
}

// attemptOf is what the span shows of the attempt that it is of.
func (a *activity) attemptOf(u *unit) sign {
	s := sign{number: a.restarts, numbered: a.numbered, start: a.span.Start}
	if a.oneTrace {
		s.trace = u.self.trace
	}
	return s
}

// activityOf returns what a span shows, which may stand for an event.
func activityOf(p program, v *values, facts *mlattr.Facts, event mlattr.EventKind, start, end int64) activity {
	a := activity{program: p}
	if restarts, ok := facts.IntAt(slotAttempt); ok {
		a.restarts, a.numbered = restarts, true
	}
	if facts.Systems.Has(mlattr.IdlesBetweenSpans) {
		a.idles, a.noStartup = true, true
	}
	a.oneTrace = facts.Systems.Has(mlattr.OneTrace)
	a.endsRun = v.phase == mlattr.PhaseTrain && event != mlattr.EventTrainStep
	a.span = wallclock.Span{Start: start, End: end}
	a.span.Phase, a.timed = wallclock.PhaseOf(v.phase)
	a.span.State = a.span.Phase.State()
	switch {
	case facts.Queued():
		a.timed, a.span.State = true, wallclock.Queueing
	case v.phase == mlattr.PhaseCheckpoint && restores(v.operation):
		a.span.State = wallclock.Restoring
	}
	if !facts.Systems.Has(mlattr.StepsPerEpoch) {
		if step, ok := facts.IntAt(slotStep); ok && step > 0 {
			a.step = step
		}
	}
	return a
}

// restores says whether an operation on a checkpoint reads it.
func restores(operation string) bool {
	return slices.Contains([]string{"load_weights", "load_state", "load_checkpoint", "restore_checkpoint", "restore"}, operation)
}
