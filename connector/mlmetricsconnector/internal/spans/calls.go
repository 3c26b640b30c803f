package spans

import (
	"cmp"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Values of series.Result.
const (
	resultOK    = "ok"
	resultError = "error"
)

// partSeries are the series of the parts of the time of a call.
var partSeries = [spanfact.CallParts]series.ID{series.CallDuration, series.CallQueueTime, series.CallSerializeTime, series.CallPythonTime}

// call is a call of a function in another process.
type call struct {
	spanfact.CallEvent
	result string
}

// complete sets the fields that c lacks.
func (c *call) complete(from *call) {
	if c.Library == "" && c.Function == "" {
		c.Library, c.Function = from.Library, from.Function
	}
	c.Device = cmp.Or(c.Device, from.Device)
}

// addCalls adds the call, or part of a call, that a span represents, and the
// calls that its events record.
func (r *Reader) addCalls(u *unit, v *spanfact.Fact, span ptrace.Span, failed bool) {
	p, function := r.ofSpan.Call()
	if p == table.NoCall && !r.recordedCalls.anything {
		return
	}
	var self call
	self.Library, self.Function = v.Library, cmp.Or(function, v.Function, v.Operation)
	if failed {
		self.result = resultError
	}
	if seconds, ok := length(span); ok {
		self.Seconds[spanfact.Whole] = seconds
	} else if p != table.NoCall {
		p = table.NoCall
		r.Skipped.OutOfRange++
	}
	switch p {
	case table.FunctionPart:
		// A worker may catch the exception of its function, so that only
		// failures are certain.
		r.observe(u, spanfact.InPython, &self, self.Seconds[spanfact.Whole])
	case table.QueuePart:
		r.observe(u, spanfact.Queued, &self, self.Seconds[spanfact.Whole])
	case table.WholeCall:
		self.result = cmp.Or(self.result, resultOK)
		r.countCall(u, &self)
		u.wholeCall, u.library, u.function = true, self.Library, self.Function
	case table.SharedCall:
		self.result = cmp.Or(self.result, resultOK)
	}
	if r.recordedCalls.anything || p == table.SharedCall {
		r.finishRecordedCalls(u, &self, p == table.SharedCall)
		r.anyCalls = r.anyCalls || len(u.calls) > 0
	}
}

// length returns the duration of a span. It must be between 0 and mlattr.MaxCallTime.
func length(span ptrace.Span) (seconds float64, ok bool) {
	start, end := span.StartTimestamp(), span.EndTimestamp()
	if end < start {
		return 0, false
	}
	seconds = float64(end-start) / 1e9
	return seconds, seconds <= mlattr.MaxCallTime
}

// slowCall is the time in seconds above which a call is slow, as in Snakepit.
const slowCall = 1

// countCall adds a call to the series of all calls.
func (r *result) countCall(u *unit, c *call) {
	r.observe(u, spanfact.Whole, c, c.Seconds[spanfact.Whole])
	if c.Seconds[spanfact.Whole] > slowCall {
		r.count(u, series.CallsSlow, u.requestSource, 1, c.Library, c.Function, c.Device, c.result)
	}
}

func (r *result) observe(u *unit, p spanfact.CallPart, c *call, seconds float64) {
	r.update(u, partSeries[p], u.requestSource, c.Library, c.Function, c.Device, c.result).Value = seconds
}

// countCalls counts each call once, even if several spans record it. A client's
// own event takes precedence over a span's duration, which has neither library
// nor device; otherwise the outermost span counts.
func (t *Tally) countCalls(r *Reader) {
	if !r.anyCalls {
		return
	}
	for _, hasEvents := range [...]bool{true, false} {
		r.rule(t.calls.Outermost, 0, func(u *unit) bool { return len(u.calls) > 0 && u.hasEvents == hasEvents }, func(u *unit) {
			u.kinds |= isCalled
			for i := range u.calls {
				r.countCall(u, &u.calls[i])
				r.addCallTimes(u, &u.calls[i])
			}
		})
	}
}

// recordedCalls collects what the events of one span record about calls.
type recordedCalls struct {
	// anything reports whether any other field is set.
	anything bool
	// hasEvents reports whether the client's own events recorded calls.
	hasEvents bool
	// begun is the latest call with a begin event.
	begun call
	// ends are the calls with an end event.
	ends []call
	// apart are the times that events of the pool and the serializer state. The end event
	// of a call usually repeats them.
	apart spanfact.CallTimes
}

// reset clears all fields and keeps the memory.
func (h *recordedCalls) reset() {
	if h.anything {
		clear(h.ends)
		*h = recordedCalls{ends: h.ends[:0]}
	}
}

// addClientEvent adds an event, or a span that represents one. at is the
// event's time.
func (r *Reader) addClientEvent(u *unit, kind table.EventKind, attrs pcommon.Map, at int64) {
	h := &r.recordedCalls
	switch kind {
	case table.EventCallStart:
		e := r.readCallEvent(attrs)
		h.anything, h.hasEvents, h.begun = true, true, e
	case table.EventCallStop, table.EventCallException:
		e := r.readCallEvent(attrs)
		e.Failed = e.Failed || kind == table.EventCallException
		e.complete(&h.begun)
		h.anything, h.hasEvents, h.ends = true, true, append(h.ends, e)
	case table.EventPoolCheckout:
		if e := r.readCallEvent(attrs); e.Has[spanfact.Queued] {
			h.anything = true
			h.apart.Add(spanfact.Queued, e.Seconds[spanfact.Queued])
		}
	case table.EventSerialize:
		if e := r.readCallEvent(attrs); e.Has[spanfact.Whole] && !e.Decoding {
			h.anything = true
			h.apart.Add(spanfact.Serialized, e.Seconds[spanfact.Whole])
		}
	default:
		r.addWorkerEvent(u, kind, attrs, at)
	}
}

// finishRecordedCalls adds to u the calls that a span's events recorded, and their
// parts. self is the span, which is itself a call if isCall is true: it
// completes the events. If the events have no end, because the worker crashed,
// the span is the call.
func (r *Reader) finishRecordedCalls(u *unit, self *call, isCall bool) {
	h := &r.recordedCalls
	last, apart := h.begun, h.apart
	if isCall {
		last.complete(self)
		last.result, last.Seconds[spanfact.Whole] = self.result, self.Seconds[spanfact.Whole]
	}
	for i := range h.ends {
		e := &h.ends[i]
		if isCall {
			e.complete(self)
			if !e.Has[spanfact.Whole] {
				e.Seconds[spanfact.Whole], e.Has[spanfact.Whole] = self.Seconds[spanfact.Whole], true
			}
		}
		e.Function, e.result = cmp.Or(e.Function, e.Operation), resultOK
		if e.Failed {
			e.result = resultError
		}
		r.observeParts(u, e, &e.CallTimes)
		for p, has := range e.Has {
			apart.Has[p] = apart.Has[p] && !has
		}
		if e.Has[spanfact.Whole] {
			u.calls = append(u.calls, *e)
		}
		last = *e
	}
	if isCall && len(h.ends) == 0 {
		u.calls = append(u.calls, last)
	}
	r.observeParts(u, &last, &apart)
	u.hasEvents = h.hasEvents
}

// observeParts adds the parts of a call to their series.
func (r *result) observeParts(u *unit, c *call, times *spanfact.CallTimes) {
	for p := spanfact.Queued; p < spanfact.CallParts; p++ {
		if times.Has[p] {
			r.observe(u, p, c, times.Seconds[p])
		}
	}
}

// readCallEvent reads the attributes of an event about a call.
func (r *result) readCallEvent(attrs pcommon.Map) call {
	e, clamped, outOfRange := spanfact.ReadCallEvent(attrs)
	r.Skipped.Clamped += clamped
	r.Skipped.OutOfRange += outOfRange
	return call{CallEvent: e}
}

const (
	// maxWorkers is the largest pool that is believed.
	maxWorkers = 1 << 20
	// maxMemory is the largest memory that is believed, in bytes. Sums of many
	// do not overflow.
	maxMemory = 1 << 50
)

// memoryUnits are by the ends of keys. For _mb, clients divide by 1024 twice.
var memoryUnits = map[string]float64{"mb": 1 << 20, "bytes": 1}

// Values of series.MemoryKind.
const (
	memoryAllocated = "allocated"
	memoryReserved  = "reserved"
)

// workerCounts are the series of the events that count.
var workerCounts = map[table.EventKind]series.ID{
	table.EventWorkerCrash: series.WorkerCrashes, table.EventBreakerOpen: series.BreakerOpenings, table.EventHealthAlert: series.HealthAlerts,
}

// poolSizes are the series of the numbers of workers of a pool.
var poolSizes = map[string]series.ID{"size": series.PoolSize, "busy": series.PoolBusy, "idle": series.PoolIdle}

// addWorkerEvent adds what an event of a worker, its pool or its memory said.
//
// Workers that are taken from a pool and given back are not counted: both
// events come with the end of their span, when the worker is idle again.
func (r *Reader) addWorkerEvent(u *unit, kind table.EventKind, attrs pcommon.Map, at int64) {
	where := ""
	if v, ok := attrs.Get("device"); ok {
		where = spanfact.Device(v)
	}
	if id, counts := workerCounts[kind]; counts {
		r.count(u, id, u.requestSource, 1, r.pool(attrs), classOf(attrs), where)
		return
	}
	for key, v := range attrs.All() {
		switch kind {
		case table.EventPoolSize:
			if id, ok := poolSizes[key]; ok {
				n, ok := mlattr.ReadInt(v)
				r.show(u, id, at, float64(n), ok && n >= 0 && n <= maxWorkers, r.pool(attrs), r.instance())
			}
		case table.EventMemoryAllocate, table.EventMemoryRelease:
			if key == "bytes" {
				r.addMemory(u, kind, v, wordAt(attrs, "type"), where)
			}
		case table.EventGPUMemory:
			memory, unit, _ := strings.Cut(key, "_")
			if times := memoryUnits[unit]; times > 0 && (memory == memoryAllocated || memory == memoryReserved) {
				n, ok, _ := mlattr.ReadDouble(v)
				n *= times
				r.show(u, series.GPUMemoryUsage, at, math.Round(n), ok && n >= 0 && n <= maxMemory, memory, where, r.instance())
			}
		}
	}
}

// addMemory adds memory that was allocated or released.
func (r *Reader) addMemory(u *unit, kind table.EventKind, bytes pcommon.Value, of, where string) {
	n, ok := mlattr.ReadInt(bytes)
	if !ok || n < 0 || n > maxMemory {
		r.Skipped.OutOfRange++
		return
	}
	if kind == table.EventMemoryRelease {
		n = -n
	}
	r.count(u, series.MemoryAllocated, u.requestSource, n, of, where, r.instance())
}

// classOf returns the class of a crash or an alert.
func classOf(attrs pcommon.Map) string {
	class := cmp.Or(wordAt(attrs, "type"), wordAt(attrs, "alert_type"))
	// Elixir prints any term as the reason. Only an atom is a class.
	if reason := wordAt(attrs, "reason"); class == "" && isAtom(reason) {
		return reason
	}
	return class
}

// show adds the value that a series had at a time, if it is plausible.
func (r *result) show(u *unit, id series.ID, at int64, value float64, plausible bool, labels ...string) {
	if !plausible {
		r.Skipped.OutOfRange++
		return
	}
	up := r.update(u, id, u.requestSource, labels...)
	up.Value, up.At = value, at
}

// pool names the pool that an event is about, which the span may say as well.
func (r *spanFacts) pool(attrs pcommon.Map) string {
	name := wordAt(attrs, "pool")
	for _, key := range vocabulary.PoolKeys() {
		name = cmp.Or(name, wordAt(r.spanAttrs, key))
	}
	return name
}

// wordAt returns the word of an attribute, or "".
func wordAt(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok {
		return mlattr.ReadWord(v)
	}
	return ""
}

// instance returns the service.instance.id of the resource, or "".
func (r *resourceFacts) instance() string { return mlattr.IDAt(r.resourceAttrs, series.Instance) }

// isAtom reports whether a text is a plain atom of Elixir's.
func isAtom(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

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
	if h.apart.Has[spanfact.Queued] {
		t.Queue = h.apart.Seconds[spanfact.Queued]
	}
	t.Serialize = h.apart.Seconds[spanfact.Serialized]
	for i := range h.ends {
		e := &h.ends[i]
		t.Queue, t.Serialize, t.Function = max(t.Queue, e.Seconds[spanfact.Queued]), max(t.Serialize, e.Seconds[spanfact.Serialized]), t.Function+e.Seconds[spanfact.InPython]
	}
}

// kindOf returns what a span does in the time that nothing below it accounts for.
func (r *spanFacts) kindOf(v *spanfact.Fact, span ptrace.Span) bound.Kind {
	part, _ := r.ofSpan.Call()
	out := span.Kind() == ptrace.SpanKindClient
	switch {
	case part == table.QueuePart:
		return bound.Waits
	case r.ofSpan.Queued():
		return bound.ContainsWait
	case v.Phase == mlattr.PhaseDataLoad:
		return bound.Loads
	case v.Side == mlattr.SideClient, (out || r.ofSpan.Systems.Has(table.ModelsElsewhere)) && asksModel(v):
		return bound.Asks
	case out:
		return bound.CallsOut
	default:
		return bound.Works
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
	if c.Seconds[spanfact.Queued]+c.Seconds[spanfact.Serialized]+c.Seconds[spanfact.InPython] == 0 && len(u.calls) == 1 {
		r.addTimes(u, c.Library, c.Function)
		return
	}
	one := bound.Span{
		Seconds: c.Seconds[spanfact.Whole], Queue: c.Seconds[spanfact.Queued], Serialize: c.Seconds[spanfact.Serialized], Function: c.Seconds[spanfact.InPython],
		Utilization: r.Loads.Utilization(u.Source), Cores: u.cores,
	}
	times := one.Divide()
	r.addCauses(u, c.Library, c.Function, &times)
}

func (r *result) addCauses(u *unit, library, function string, times *bound.Times) {
	for cause, seconds := range times {
		if seconds > 0 {
			name := bound.Cause(cause).String() // #nosec G115 -- few
			r.update(u, series.CallTime, u.hostSource, name, library, function, u.Operation, u.role, u.model, u.side).Value = seconds
		}
	}
}
