package spans

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/nesting"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// rememberedTimes is how many spans are remembered whose children have arrived.
const rememberedTimes = 16_384

var slotQueueTime = vocabulary.SlotOf(mlattr.QueueTime)

// times has the spans of a request whose time is divided.
type times struct {
	timed []timedSpan
	// timedOrder is their order, lastOfTrace memory of childrenFirst.
	timedOrder  []timedEnd
	lastOfTrace map[nesting.Trace]int32
}

// timedSpan is a span whose time is divided by cause.
type timedSpan struct {
	trace        nesting.Trace
	self, parent nesting.Key
	start, end   pcommon.Timestamp
	bound.Span
	// ofModel reports whether the span is that of a model's server, serves whether
	// its program works for others, who may wait for their turn.
	ofModel, serves bool
	// again reports whether the span was delivered before.
	again bool
	times bound.Times
}

// addTimed notes the time of a span, to be divided when the spans below it are
// known.
func (r *Reader) addTimed(u *unit, v *values, span ptrace.Span) {
	kind := r.kindOf(v, span)
	serves := r.ofSpan.Systems.Has(table.ManyRuns)
	if kind == bound.Works && !serves && v.Phase != "" && v.Phase != mlattr.PhaseSample {
		return // the training of a program that nobody calls
	}
	seconds, ok := length(span)
	if !ok || seconds == 0 {
		return
	}
	t := next(&r.timed)
	u.timed = len(r.timed)
	t.trace, t.self, t.parent, t.start, t.end = r.hash, u.Self, u.Parent, span.StartTimestamp(), span.EndTimestamp()
	t.Span = bound.Span{Seconds: seconds, Kind: kind, Utilization: r.Loads.Utilization(u.Source), Cores: r.cores}
	t.ofModel, t.serves, t.again = v.Side == mlattr.SideServer || span.Kind() == ptrace.SpanKindServer && asksModel(v), serves, false
	if wait := r.ofSpan.At(slotQueueTime); wait != nil && !wait.NonFinite && !wait.Unreadable {
		t.Queue = wait.Double
	}
	if r.recordedCalls.anything {
		t.addRecorded(&r.recordedCalls)
	}
}

// addRecorded adds what the events of the span record.
func (t *timedSpan) addRecorded(h *recordedCalls) {
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
func (r *spanFacts) kindOf(v *values, span ptrace.Span) bound.Kind {
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
func asksModel(v *values) bool {
	return v.HasInput || v.HasOutput || v.Phase == mlattr.PhaseSample || vocabulary.AsksModel(v.GenAIOperation)
}

// orderTimes orders the spans whose time is divided, children before their parents. It
// leaves timedOrder empty if they are in such an order, as SDKs send them.
func (r *times) orderTimes() {
	r.timedOrder = r.timedOrder[:0]
	if r.childrenFirst() {
		return
	}
	r.timedOrder = slices.Grow(r.timedOrder, len(r.timed))
	for i := range r.timed {
		t := &r.timed[i]
		r.timedOrder = append(r.timedOrder, timedEnd{t.end, t.start, int32(i)}) // #nosec G115 -- spans of a request
	}
	slices.SortFunc(r.timedOrder, func(a, b timedEnd) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(b.start, a.start), cmp.Compare(a.at, b.at))
	})
}

// childrenFirst reports whether the spans of each trace are in the order of their ends.
func (r *times) childrenFirst() bool {
	clear(r.lastOfTrace) // putBack keeps no reader that is large
	for i := 1; i < len(r.timed); i++ {
		t, before := &r.timed[i], &r.timed[i-1]
		if before.trace != t.trace {
			r.lastOfTrace[before.trace] = int32(i - 1) // #nosec G115 -- spans of a request
			last, known := r.lastOfTrace[t.trace]
			if !known {
				continue
			}
			before = &r.timed[last]
		}
		if t.end < before.end || t.end == before.end && t.start > before.start {
			return false
		}
	}
	return true
}

// timedEnd is what orders the spans whose time is divided, apart from the rest, which
// would fill the processor's caches.
type timedEnd struct {
	end, start pcommon.Timestamp
	// at is the index of the span in times.timed.
	at int32
}

// divideTimes divides the times of all spans, in their order.
func (t *Tally) divideTimes(r *Reader) {
	if len(r.timedOrder) == 0 {
		for i := range r.timed {
			t.divide(&r.timed[i])
		}
		return
	}
	for i := range r.timedOrder {
		t.divide(&r.timed[r.timedOrder[i].at])
	}
}

// divide divides the time of one span, after those below it.
func (t *Tally) divide(one *timedSpan) {
	if one.again {
		return
	}
	if one.self.Known() {
		t.below.Take(uint64(one.self), &one.Below)
	}
	leaf := one.Below == bound.Times{}
	one.times = one.Divide()
	switch {
	case !one.parent.Known() || one.parent == one.self:
	case one.ofModel:
		t.below.Add(uint64(one.parent), &bound.Times{bound.ModelServer: one.Seconds})
	case leaf && one.Kind == bound.Works && !one.serves && one.Queue+one.Serialize == 0:
		// The work of the parent, for all that is known.
	default:
		t.below.Add(uint64(one.parent), &one.times)
	}
}

// addTimes adds on what the time of a span was spent that is a call or request.
func (r *Reader) addTimes(u *unit, library, function string) {
	if u.timed > 0 {
		r.addCauses(u, library, function, &r.timed[u.timed-1].times)
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

func (r *Reader) addCauses(u *unit, library, function string, times *bound.Times) {
	for cause, seconds := range times {
		if seconds > 0 {
			name := bound.Cause(cause).String() // #nosec G115 -- few
			r.update(u, series.CallTime, u.hostSource, name, library, function, u.Operation, u.role, u.model, u.side).Value = seconds
		}
	}
}
