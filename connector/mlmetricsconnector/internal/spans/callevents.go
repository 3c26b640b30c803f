package spans

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

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
