package mlmetricsconnector

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// rememberedTimes is how many spans are remembered whose children have arrived.
const rememberedTimes = 16_384

var slotQueueTime = mlattr.SlotOf(mlattr.QueueTime)

// timedSpan is a span whose time is divided by cause.
type timedSpan struct {
	self, parent spanRef
	start, end   int64
	bound.Span
	// ofModel reports whether the span is that of a model's server.
	ofModel bool
	times   bound.Times
}

// addTimed notes the time of a span, to be divided when the spans below it are
// known. A span without an id has none below it that are known.
func (r *reader) addTimed(u *unit, v *values, span ptrace.Span) {
	seconds, ok := length(span)
	if !ok || seconds == 0 {
		return
	}
	r.timed = append(r.timed, timedSpan{
		self: u.self, parent: u.parent, start: u.start, end: u.end,
		Span: bound.Span{Seconds: seconds, Kind: r.kindOf(v, span)}, ofModel: isModelServer(v, span),
	})
	u.timed = len(r.timed)
	t := &r.timed[u.timed-1]
	t.Utilization, t.Cores = r.loads.utilization(u.source), r.cores
	if wait := r.ofSpan.At(slotQueueTime); wait != nil && usable(wait) {
		t.Queue = wait.Double
	}
	h := &r.recordedCalls
	if !h.anything {
		return
	}
	if h.hasWait {
		t.Queue = h.wait
	}
	if h.hasEncoding {
		t.Serialize = h.encoding
	}
	for i := range h.ends {
		e := &h.ends[i]
		t.Queue, t.Serialize, t.Function = max(t.Queue, e.queue), max(t.Serialize, e.serialize), t.Function+e.python
	}
}

// kindOf returns what a span does in the time that nothing below it accounts for.
func (r *reader) kindOf(v *values, span ptrace.Span) bound.Kind {
	part, _ := r.ofSpan.Call()
	switch {
	case part == mlattr.QueuePart:
		return bound.Waits
	case r.ofSpan.Queued():
		return bound.ContainsWait
	case v.phase == mlattr.PhaseDataLoad:
		return bound.Loads
	case v.side == mlattr.SideClient:
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
func asksModel(v *values) bool {
	return v.hasInput || v.hasOutput || v.phase == mlattr.PhaseSample || mlattr.AsksModel(v.genAIOperation)
}

// isModelServer reports whether a span is that of a model's server.
func isModelServer(v *values, span ptrace.Span) bool {
	return v.side == mlattr.SideServer || span.Kind() == ptrace.SpanKindServer && asksModel(v)
}

// divideTimes divides the times of all spans, children before their parents.
func (t *tally) divideTimes(r *reader) {
	order := func(a, b int32) int {
		x, y := &r.timed[a], &r.timed[b]
		return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(y.start, x.start))
	}
	r.timedOrder = r.timedOrder[:0]
	for i := range r.timed {
		r.timedOrder = append(r.timedOrder, int32(i)) // #nosec G115 -- spans of a request
	}
	if !slices.IsSortedFunc(r.timedOrder, order) {
		slices.SortStableFunc(r.timedOrder, order)
	}
	for _, i := range r.timedOrder {
		one := &r.timed[i]
		if one.self.known() {
			one.Below = t.below.Take(one.self.ref())
		}
		one.times = one.Divide()
		if !one.parent.known() || one.parent == one.self {
			continue
		}
		if one.ofModel {
			t.below.Add(one.parent.ref(), &bound.Times{bound.ModelServer: one.Seconds})
		} else {
			t.below.Add(one.parent.ref(), &one.times)
		}
	}
}

// ref returns the span's identity as bytes.
func (r *spanRef) ref() *bound.Ref {
	var ref bound.Ref
	copy(ref[:], r.trace[:])
	copy(ref[len(r.trace):], r.span[:])
	return &ref
}

// addTimes adds on what the time of a span was spent that is a call or request.
func (r *reader) addTimes(u *unit, library, function string) {
	if u.timed == 0 {
		return
	}
	r.addCauses(u, library, function, &r.timed[u.timed-1].times)
}

// addCallTimes does so for a call that a span records. What its client measured
// goes before what the span shows.
func (r *reader) addCallTimes(u *unit, c *call) {
	if c.queue+c.serialize+c.python == 0 && len(u.calls) == 1 {
		r.addTimes(u, c.library, c.function)
		return
	}
	one := bound.Span{
		Seconds: c.seconds, Queue: c.queue, Serialize: c.serialize, Function: c.python,
		Utilization: r.loads.utilization(u.source), Cores: u.cores,
	}
	times := one.Divide()
	r.addCauses(u, c.library, c.function, &times)
}

func (r *reader) addCauses(u *unit, library, function string, times *bound.Times) {
	for cause, seconds := range times {
		if seconds > 0 {
			name := bound.Cause(cause).String() // #nosec G115 -- few
			r.update(u, series.CallTime, u.hostSource, name, library, function, u.operation, u.role, u.model, u.side).Value = seconds
		}
	}
}
