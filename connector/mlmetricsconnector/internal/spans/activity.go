package spans

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/program"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// ownTime returns a client's time in nanoseconds since 1970, or now if it is
// too far ahead.
func ownTime(at pcommon.Timestamp, now int64) int64 {
	if uint64(at) > uint64(now+runs.MaxAhead) {
		return now
	}
	return int64(at) // #nosec G115 -- not above now
}

// readActivity reads what a span shows of the time of its run. The span may represent an
// event.
func (r *Reader) readActivity(s *runs.Span, v *values, event table.EventKind, span ptrace.Span) {
	facts := &r.ofSpan
	s.Program = r.program
	if restarts, ok := program.RestartsOf(facts); ok {
		s.Restarts, s.Numbered = restarts, true
	}
	if facts.Systems.Has(table.IdlesBetweenSpans) {
		s.Idles, s.NoStartup = true, true
	}
	s.OnDemand = s.OnDemand || facts.Systems.Has(table.ManyRuns)
	s.OneTrace = facts.Systems.Has(table.OneTrace)
	s.EndsRun = v.Phase == mlattr.PhaseTrain && event != table.EventTrainStep
	s.Time = wallclock.Span{Start: ownTime(span.StartTimestamp(), r.now), End: ownTime(span.EndTimestamp(), r.now)}
	s.Time.Phase, s.Timed = wallclock.PhaseOf(v.Phase)
	s.Time.State, s.Time.Whole = s.Time.Phase.State(), facts.WholeStep()
	switch {
	case facts.Queued():
		s.Timed, s.Time.State = true, wallclock.Queueing
	case v.Phase == mlattr.PhaseCheckpoint && slices.Contains(restoring, v.Operation):
		s.Time.State = wallclock.Restoring
	}
	s.Step = spanfact.Step(facts)
}

// restoring are the operations that read a checkpoint.
var restoring = []string{"load_weights", "load_state", "load_checkpoint", "restore_checkpoint", "restore"}

// Spans returns what the spans of the request show of the time of their runs. The caller
// must not keep it.
func (r *result) Spans() []*runs.Span {
	r.shown = r.shown[:0]
	for i := range r.units {
		r.shown = append(r.shown, &r.units[i].Span)
	}
	return r.shown
}
