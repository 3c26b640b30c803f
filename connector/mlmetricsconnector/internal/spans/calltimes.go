package spans

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// rememberedTimes is how many spans are remembered whose children have arrived.
const rememberedTimes = 16_384

// addTimed notes the time of a span, to be divided when the spans below it are
// known.
func (r *Reader) addTimed(u *unit, v *spanfact.Fact, span ptrace.Span) {
	kind := r.kindOf(v, span)
	serves := r.ofSpan.Systems.Has(table.ManyRuns)
	if kind == bound.Works && !serves && v.Phase != "" && v.Phase != mlattr.PhaseSample {
		return // the training of a program that nobody calls
	}
	seconds, ok := length(span)
	if !ok || seconds == 0 {
		return
	}
	t := next(&r.times)
	u.timed = len(r.times)
	t.Self, t.Parent, t.Start, t.End = u.Self, u.Parent, span.StartTimestamp(), span.EndTimestamp()
	t.Span = bound.Span{Seconds: seconds, Kind: kind, Utilization: r.Loads.Utilization(u.Source), Cores: r.cores}
	t.OfModel, t.Serves, t.Again = v.Side == mlattr.SideServer || span.Kind() == ptrace.SpanKindServer && asksModel(v), serves, false
	if wait := r.ofSpan.At(vocabulary.SlotQueueTime); wait != nil && !wait.NonFinite && !wait.Unreadable {
		t.Queue = wait.Double
	}
	if r.recordedCalls.anything {
		addRecorded(t, &r.recordedCalls)
	}
}

// addRecorded adds what the events of the span record.
func addRecorded(t *bound.Timed, h *recordedCalls) {
	if h.apart.has[queued] {
		t.Queue = h.apart.seconds[queued]
	}
	if h.apart.has[serialized] {
		t.Serialize = h.apart.seconds[serialized]
	}
	for i := range h.ends {
		e := &h.ends[i]
		t.Queue, t.Serialize, t.Function = max(t.Queue, e.seconds[queued]), max(t.Serialize, e.seconds[serialized]), t.Function+e.seconds[inPython]
	}
}

// kindOf returns what a span does in the time that nothing below it accounts for.
func (r *spanFacts) kindOf(v *spanfact.Fact, span ptrace.Span) bound.Kind {
	part, _ := r.ofSpan.Call()
	switch {
	case part == table.QueuePart:
		return bound.Waits
	case r.ofSpan.Queued():
		return bound.ContainsWait
	case v.Phase == mlattr.PhaseDataLoad:
		return bound.Loads
	case v.Side == mlattr.SideClient, r.ofSpan.Systems.Has(table.ModelsElsewhere) && asksModel(v):
		return bound.Asks
	case span.Kind() != ptrace.SpanKindClient:
		return bound.Works
	case asksModel(v):
		return bound.Asks
	default:
		return bound.CallsOut
	}
}

// asksModel reports whether a span is about a request to a model.
func asksModel(v *spanfact.Fact) bool {
	return v.HasInput || v.HasOutput || v.Phase == mlattr.PhaseSample || vocabulary.AsksModel(v.GenAIOperation)
}

// addTimes adds on what the time of a span was spent that is a call or request.
func (r *result) addTimes(u *unit, library, function string) {
	if u.timed > 0 {
		r.addCauses(u, library, function, &r.times[u.timed-1].Times)
	}
}

// addCallTimes does so for a call that a span records. What its client measured
// goes before what the span shows.
func (r *Reader) addCallTimes(u *unit, c *call) {
	if c.seconds[queued]+c.seconds[serialized]+c.seconds[inPython] == 0 && len(u.calls) == 1 {
		r.addTimes(u, c.library, c.function)
		return
	}
	one := bound.Span{
		Seconds: c.seconds[whole], Queue: c.seconds[queued], Serialize: c.seconds[serialized], Function: c.seconds[inPython],
		Utilization: r.Loads.Utilization(u.Source), Cores: u.cores,
	}
	times := one.Divide()
	r.addCauses(u, c.library, c.function, &times)
}

func (r *result) addCauses(u *unit, library, function string, times *bound.Times) {
	for cause, seconds := range times {
		if seconds > 0 {
			name := bound.Cause(cause).String() // #nosec G115 -- few
			r.update(u, series.CallTime, u.hostSource, name, library, function, u.Operation, u.role, u.model, u.side).Value = seconds
		}
	}
}
