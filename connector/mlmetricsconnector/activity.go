package mlmetricsconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
)

// maxAhead is how far a client's clock may be ahead of the collector's, in
// nanoseconds. Times are compared only with others of the same client, so they
// need not be right. A time further ahead is treated as wrong, because it would
// exclude later ones.
const maxAhead = int64(time.Hour)

// ownTime returns a client's time in nanoseconds since 1970, or now if it is
// too far ahead.
func ownTime(at pcommon.Timestamp, now int64) int64 {
	if uint64(at) > uint64(now+maxAhead) {
		return now
	}
	return int64(at) // #nosec G115 -- not above now
}

// attrProcessStart is the start of a process, which resource detectors set.
const attrProcessStart = "process.creation.time"

var (
	slotAttempt = mlattr.SlotOf(mlattr.RunAttempt)
	slotWorld   = mlattr.SlotOf(mlattr.WorldSize)
)

// program is what a resource reveals about how its client records run time.
type program struct {
	// born is the start of the run's process, 0 if unknown.
	born int64
	// idles reports whether time without a span is time without work.
	idles bool
	// onDemand reports whether the process works when it is asked to, for many
	// runs, so that time without a span says nothing about its speed.
	onDemand bool
	// noStartup reports whether time before the first productive moment may be
	// something other than startup.
	noStartup bool
	// restarts is the launcher's count of restarts; numbered reports whether
	// there is one.
	restarts int64
	numbered bool
	// world is the number of ranks of the run, 0 if unknown, and some reports
	// whether only some of them may send.
	world int64
	some  bool
	// tokens is the number of tokens of a step of all ranks, 0 if unknown.
	tokens float64
}

// maxWorld is the largest accepted number of ranks of a run.
const maxWorld = 1 << 20

// programOf reads a resource. If a client's first span is no startup, only the
// start of its process reveals the startup, unless the process serves many
// runs.
func programOf(facts *mlattr.Facts, attrs pcommon.Map) program {
	p := program{
		idles:     facts.Systems.Has(mlattr.IdlesBetweenSpans),
		noStartup: facts.Systems.Has(mlattr.NoStartup),
		onDemand:  facts.Systems.Has(mlattr.ManyRuns),
	}
	p.restarts, p.numbered = facts.IntAt(slotAttempt)
	if world, ok := facts.IntAt(slotWorld); ok && world > 0 && world <= maxWorld {
		p.world = world
	}
	p.some = facts.Systems.Has(mlattr.SomeRanksSend)
	if tokens, ok := facts.Double(mlattr.JobTokensPerStep); ok && tokens > 0 && tokens <= maxPerStep {
		p.tokens = tokens
	}
	if p.onDemand {
		return p
	}
	if start, ok := attrs.Get(attrProcessStart); ok {
		if at, err := time.Parse(time.RFC3339Nano, start.Str()); err == nil && at.Unix() > 0 && at.Year() < 2200 {
			p.born, p.noStartup = at.UnixNano(), false
		}
	}
	return p
}

// activity is what a span reveals about the time of its run.
type activity struct {
	program
	// timed reports whether span has a duration that counts.
	timed bool
	// span has the client's times, even if timed is false.
	span wallclock.Span
	// endsRun reports whether the span is that of the whole training.
	endsRun bool
	// step is the number of the step within the run, 0 if the client does not
	// number steps that way.
	step int64
	// root reports whether the span has no parent and may be that of a program that
	// trains.
	root bool
	// oneTrace reports whether a process of the client has one trace for its
	// whole life.
	oneTrace bool
}

// attemptOf returns what the span reveals about its attempt.
func (a *activity) attemptOf(u *unit) sign {
	s := sign{number: a.restarts, numbered: a.numbered, start: a.span.Start}
	if a.oneTrace {
		s.trace = u.trace
	}
	return s
}

// activityOf reads a span, which may represent an event.
func activityOf(p program, v *values, facts *mlattr.Facts, event mlattr.EventKind, start, end int64) activity {
	a := activity{program: p}
	if restarts, ok := facts.IntAt(slotAttempt); ok {
		a.restarts, a.numbered = restarts, true
	}
	if facts.Systems.Has(mlattr.IdlesBetweenSpans) {
		a.idles, a.noStartup = true, true
	}
	a.onDemand = a.onDemand || facts.Systems.Has(mlattr.ManyRuns)
	a.oneTrace = facts.Systems.Has(mlattr.OneTrace)
	a.endsRun = v.Phase == mlattr.PhaseTrain && event != mlattr.EventTrainStep
	a.span = wallclock.Span{Start: start, End: end}
	a.span.Phase, a.timed = wallclock.PhaseOf(v.Phase)
	a.span.State, a.span.Whole = a.span.Phase.State(), facts.WholeStep()
	switch {
	case facts.Queued():
		a.timed, a.span.State = true, wallclock.Queueing
	case v.Phase == mlattr.PhaseCheckpoint && restores(v.Operation):
		a.span.State = wallclock.Restoring
	}
	a.step = spanfact.Step(facts)
	return a
}

// restores reports whether an operation reads a checkpoint.
func restores(operation string) bool {
	return slices.Contains([]string{"load_weights", "load_state", "load_checkpoint", "restore_checkpoint", "restore"}, operation)
}
