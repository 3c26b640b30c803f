package spans

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

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
	// wait and encoding are the times of the pool and the serializer, in
	// seconds. The end event of a call usually repeats them.
	wait, encoding       float64
	hasWait, hasEncoding bool
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
		if e := r.readCallEvent(attrs); e.has&hasQueue != 0 {
			h.anything, h.hasWait = true, true
			h.wait += e.queue
		}
	case table.EventSerialize:
		if e := r.readCallEvent(attrs); e.has&hasDuration != 0 && !e.decoding {
			h.anything, h.hasEncoding = true, true
			h.encoding += e.seconds
		}
	default:
		event := workerEvent{r, u, attrs, at}
		event.add(kind)
	}
}

// addOwnEvent adds a span that represents an event. Spans of the pool or the
// serializer repeat what the span of the call records.
func (r *Reader) addOwnEvent(u *unit, kind table.EventKind, attrs pcommon.Map) {
	switch kind {
	case table.NoEvent, table.EventPoolCheckout, table.EventSerialize:
	default:
		r.addClientEvent(u, kind, attrs, u.end)
	}
}

// finishRecordedCalls adds to u the calls that a span's events recorded, and their
// parts. self is the span, which is itself a call if isCall is true: it
// completes the events. If the events have no end, because the worker crashed,
// the span is the call.
func (r *Reader) finishRecordedCalls(u *unit, self *call, isCall bool) {
	h := &r.recordedCalls
	last := h.begun
	if isCall {
		last.complete(self)
		last.result, last.seconds = self.result, self.seconds
	}
	wait, encoding := h.hasWait, h.hasEncoding
	for i := range h.ends {
		e := &h.ends[i]
		if isCall {
			e.complete(self)
			if e.has&hasDuration == 0 {
				e.seconds, e.has = self.seconds, e.has|hasDuration
			}
		}
		if e.function == "" {
			e.function = e.operation
		}
		e.result = resultOK
		if e.failed {
			e.result = resultError
		}
		if e.has&hasQueue != 0 {
			r.observe(u, series.CallQueueTime, &e.call, e.queue)
			wait = false
		}
		if e.has&hasSerialize != 0 {
			r.observe(u, series.CallSerializeTime, &e.call, e.serialize)
			encoding = false
		}
		if e.has&hasPython != 0 {
			r.observe(u, series.CallPythonTime, &e.call, e.python)
		}
		if e.has&hasDuration != 0 {
			u.calls = append(u.calls, e.call)
		}
		last = e.call
	}
	if isCall && len(h.ends) == 0 {
		u.calls = append(u.calls, last)
	}
	if wait {
		r.observe(u, series.CallQueueTime, &last, h.wait)
	}
	if encoding {
		r.observe(u, series.CallSerializeTime, &last, h.encoding)
	}
	u.hasEvents = h.hasEvents
}

// has is a set of durations that an event contains.
type has uint8

const (
	hasDuration has = 1 << iota
	hasQueue
	hasSerialize
	hasPython
)

// callEvent is one event about a call.
type callEvent struct {
	call
	operation        string
	failed, decoding bool
	has              has
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
			r.readCallTime(&e, key, v)
		}
	}
	return e
}

func (r *result) readCallTime(e *callEvent, key string, v pcommon.Value) {
	what, unit := mlattr.CallTimeKey(key)
	var to *float64
	var bit has
	switch what {
	case "duration":
		to, bit = &e.seconds, hasDuration
	case "queue_time":
		to, bit = &e.queue, hasQueue
	case "serialize_time":
		to, bit = &e.serialize, hasSerialize
	case "python_time":
		to, bit = &e.python, hasPython
	default:
		return
	}
	seconds, ok := mlattr.ReadCallTime(v, unit)
	if ok && seconds < 0 && bit == hasQueue {
		// Two clocks disagree about a short wait.
		r.Skipped.Clamped++
		seconds = 0
	}
	if !ok || seconds < 0 {
		r.Skipped.OutOfRange++
		return
	}
	*to, e.has = seconds, e.has|bit
}
