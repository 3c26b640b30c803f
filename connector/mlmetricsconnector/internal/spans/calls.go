package spans

import (
	"cmp"
	"math"
	"slices"
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

// part is a part of the time of a call.
type part uint8

// The parts that clients measure, and the whole call.
const (
	whole part = iota
	queued
	serialized
	inPython
	parts
)

// partKeys are the keys of the parts in events, without their unit, and partSeries their
// series.
var (
	partKeys   = [parts]string{"duration", "queue_time", "serialize_time", "python_time"}
	partSeries = [parts]series.ID{series.CallDuration, series.CallQueueTime, series.CallSerializeTime, series.CallPythonTime}
)

// partTimes are the times of the parts in seconds, as far as they are known.
type partTimes struct {
	seconds [parts]float64
	has     [parts]bool
}

func (t *partTimes) add(p part, seconds float64) { t.seconds[p], t.has[p] = t.seconds[p]+seconds, true }

// call is a call of a function in another process.
type call struct {
	library, function, device, result string
	partTimes
}

// complete sets the fields that c lacks.
func (c *call) complete(from *call) {
	if c.library == "" && c.function == "" {
		c.library, c.function = from.library, from.function
	}
	c.device = cmp.Or(c.device, from.device)
}

// addCalls adds the call, or part of a call, that a span represents, and the
// calls that its events record.
func (r *Reader) addCalls(u *unit, v *spanfact.Fact, span ptrace.Span, failed bool) {
	p, function := r.ofSpan.Call()
	if p == table.NoCall && !r.recordedCalls.anything {
		return
	}
	self := call{library: v.Library, function: cmp.Or(function, v.Function, v.Operation)}
	if failed {
		self.result = resultError
	}
	if seconds, ok := length(span); ok {
		self.seconds[whole] = seconds
	} else if p != table.NoCall {
		p = table.NoCall
		r.Skipped.OutOfRange++
	}
	switch p {
	case table.FunctionPart:
		// A worker may catch the exception of its function, so that only
		// failures are certain.
		r.observe(u, inPython, &self, self.seconds[whole])
	case table.QueuePart:
		r.observe(u, queued, &self, self.seconds[whole])
	case table.WholeCall:
		self.result = cmp.Or(self.result, resultOK)
		r.countCall(u, &self)
		u.wholeCall, u.library, u.function = true, self.library, self.function
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
	r.observe(u, whole, c, c.seconds[whole])
	if c.seconds[whole] > slowCall {
		r.count(u, series.CallsSlow, u.requestSource, 1, c.library, c.function, c.device, c.result)
	}
}

func (r *result) observe(u *unit, p part, c *call, seconds float64) {
	r.update(u, partSeries[p], u.requestSource, c.library, c.function, c.device, c.result).Value = seconds
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
	ends []callEvent
	// apart are the times that events of the pool and the serializer state. The end event
	// of a call usually repeats them.
	apart partTimes
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
		h.anything, h.hasEvents, h.begun = true, true, e.call
	case table.EventCallStop, table.EventCallException:
		e := r.readCallEvent(attrs)
		e.failed = e.failed || kind == table.EventCallException
		e.complete(&h.begun)
		h.anything, h.hasEvents, h.ends = true, true, append(h.ends, e)
	case table.EventPoolCheckout:
		if e := r.readCallEvent(attrs); e.has[queued] {
			h.anything = true
			h.apart.add(queued, e.seconds[queued])
		}
	case table.EventSerialize:
		if e := r.readCallEvent(attrs); e.has[whole] && !e.decoding {
			h.anything = true
			h.apart.add(serialized, e.seconds[whole])
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
		last.result, last.seconds[whole] = self.result, self.seconds[whole]
	}
	for i := range h.ends {
		e := &h.ends[i]
		if isCall {
			e.complete(self)
			if !e.has[whole] {
				e.seconds[whole], e.has[whole] = self.seconds[whole], true
			}
		}
		e.function, e.result = cmp.Or(e.function, e.operation), resultOK
		if e.failed {
			e.result = resultError
		}
		r.observeParts(u, &e.call, &e.partTimes)
		for p, has := range e.has {
			apart.has[p] = apart.has[p] && !has
		}
		if e.has[whole] {
			u.calls = append(u.calls, e.call)
		}
		last = e.call
	}
	if isCall && len(h.ends) == 0 {
		u.calls = append(u.calls, last)
	}
	r.observeParts(u, &last, &apart)
	u.hasEvents = h.hasEvents
}

// observeParts adds the parts of a call to their series.
func (r *result) observeParts(u *unit, c *call, times *partTimes) {
	for p := queued; p < parts; p++ {
		if times.has[p] {
			r.observe(u, p, c, times.seconds[p])
		}
	}
}

// callEvent is one event about a call.
type callEvent struct {
	call
	operation        string
	failed, decoding bool
}

// readCallEvent reads an event's attributes, which have the client's short
// names, or canonical names if ml_enrich has read the span.
func (r *result) readCallEvent(attrs pcommon.Map) callEvent {
	var e callEvent
	for key, v := range attrs.All() {
		switch key {
		case "library", mlattr.Library:
			e.library = mlattr.ReadWord(v)
		case "function", mlattr.Function:
			e.function = mlattr.ReadWord(v)
		case "operation", mlattr.Operation:
			e.operation = mlattr.ReadWord(v)
		case "device":
			e.device = device(v)
		case "result":
			e.failed = e.failed || mlattr.ReadWord(v) != resultOK
		case "direction":
			e.decoding = mlattr.ReadWord(v) == "decode"
		default:
			what, unit := mlattr.CallTimeKey(key)
			p := slices.Index(partKeys[:], what)
			if p < 0 {
				continue
			}
			seconds, ok := mlattr.ReadCallTime(v, unit)
			if ok && seconds < 0 && part(p) == queued {
				// Two clocks disagree about a short wait.
				r.Skipped.Clamped++
				seconds = 0
			}
			if !ok || seconds < 0 {
				r.Skipped.OutOfRange++
				continue
			}
			e.seconds[p], e.has[p] = seconds, true
		}
	}
	return e
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
		where = device(v)
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
func classOf(attrs pcommon.Map) (class string) {
	for key, v := range attrs.All() {
		switch key {
		case "type", "alert_type":
			class = mlattr.ReadWord(v)
		case "reason":
			// Elixir prints any term here. Only an atom is a class.
			if reason := mlattr.ReadWord(v); class == "" && isAtom(reason) {
				class = reason
			}
		}
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

// device reads where something is as PyTorch writes it, from "cuda:0" itself
// or Elixir's "{:cuda, 0}".
func device(v pcommon.Value) string {
	if v.Type() != pcommon.ValueTypeStr {
		return mlattr.ReadWord(v)
	}
	inner, ok := strings.CutPrefix(v.Str(), "{:")
	if !ok {
		return mlattr.ReadWord(v)
	}
	kind, index, pair := strings.Cut(strings.TrimSuffix(inner, "}"), ",")
	text := kind + ":" + strings.TrimSpace(index)
	if !pair || len(text) > mlattr.MaxText || !mlattr.ValidID(text) {
		return ""
	}
	return text
}

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
