package mlmetricsconnector

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// nanosecond and its like are units of time, in seconds.
const (
	nanosecond  = 1e-9
	microsecond = 1e-6
	millisecond = 1e-3
	second      = 1.0
)

// timeSuffixes are the ends of keys that name the unit of a time. Erlang's
// native unit is the nanosecond on Linux and macOS.
var timeSuffixes = []struct {
	suffix string
	unit   float64
}{
	{"_ns", nanosecond}, {"_us", microsecond}, {"_ms", millisecond}, {"_s", second}, {"_native", nanosecond},
}

// timeKey splits the key of a time into what was timed and its unit. A key
// that names none is in Erlang's native unit.
func timeKey(key string) (what string, unit float64) {
	for _, s := range timeSuffixes {
		if what, ok := strings.CutSuffix(key, s.suffix); ok {
			return what, s.unit
		}
	}
	return key, nanosecond
}

// heard is what the events of one span said about calls.
type heard struct {
	// anything is false while there is nothing else to look at.
	anything bool
	// told is true where the client's own events told of calls.
	told bool
	// begun is what the last call that began said of itself.
	begun call
	// ends are the calls that ended.
	ends []callEvent
	// wait and encoding are what the pool and the serializer said, in seconds.
	// The end of a call mostly says the same.
	wait, encoding       float64
	hasWait, hasEncoding bool
}

// reset forgets everything and keeps the memory.
func (h *heard) reset() {
	if h.anything {
		clear(h.ends)
		*h = heard{ends: h.ends[:0]}
	}
}

// addClientEvent adds what an event, or a span that stands for one, says. at is
// the event's time.
func (r *reader) addClientEvent(u *unit, kind mlattr.EventKind, attrs pcommon.Map, at int64) {
	h := &r.heard
	switch kind {
	case mlattr.EventCallStart:
		e := r.readCallEvent(attrs)
		h.anything, h.told, h.begun = true, true, e.call
	case mlattr.EventCallStop, mlattr.EventCallException:
		e := r.readCallEvent(attrs)
		e.failed = e.failed || kind == mlattr.EventCallException
		e.complete(&h.begun)
		h.anything, h.told, h.ends = true, true, append(h.ends, e)
	case mlattr.EventPoolCheckout:
		if e := r.readCallEvent(attrs); e.has&hasQueue != 0 {
			h.anything, h.hasWait = true, true
			h.wait += e.queue
		}
	case mlattr.EventSerialize:
		if e := r.readCallEvent(attrs); e.has&hasDuration != 0 && !e.decoding {
			h.anything, h.hasEncoding = true, true
			h.encoding += e.seconds
		}
	default:
		r.addWorkerEvent(u, kind, attrs, at)
	}
}

// addOwnEvent adds what a span says that stands for an event. A span for the
// pool or the serializer repeats what the span for the call says.
func (r *reader) addOwnEvent(u *unit, kind mlattr.EventKind, attrs pcommon.Map) {
	switch kind {
	case mlattr.NoEvent, mlattr.EventPoolCheckout, mlattr.EventSerialize:
	default:
		r.addClientEvent(u, kind, attrs, u.end)
	}
}

// finishHeard adds the calls that a span's events told of to u, and the parts
// of them that were measured. Self is the span, a call itself where isCall is
// true: it completes what the events say, and is a call that began and whose
// end nobody told where they say no more, such as one whose worker died.
func (r *reader) finishHeard(u *unit, self *call, isCall bool) {
	h := &r.heard
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
	u.told = h.told
}

// has says which times of an event could be read.
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
	operation                string
	failed, decoding         bool
	queue, serialize, python float64
	has                      has
}

// readCallEvent reads an event's attributes, which have the client's short
// names or, on a span that ml_enrich has seen, canonical ones.
func (r *reader) readCallEvent(attrs pcommon.Map) callEvent {
	var e callEvent
	for key, v := range attrs.All() {
		switch key {
		case "library", mlattr.Library:
			e.library = word(v)
		case "function", mlattr.Function:
			e.function = word(v)
		case "operation", mlattr.Operation:
			e.operation = word(v)
		case "device":
			e.device = device(v)
		case "result":
			e.failed = e.failed || word(v) != resultOK
		case "direction":
			e.decoding = word(v) == "decode"
		default:
			r.readCallTime(&e, key, v)
		}
	}
	return e
}

func (r *reader) readCallTime(e *callEvent, key string, v pcommon.Value) {
	what, unit := timeKey(key)
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
	seconds, ok := readTime(v, unit)
	if ok && seconds < 0 && bit == hasQueue {
		// Two clocks that disagree about a short wait.
		r.clamped++
		seconds = 0
	}
	if !ok || seconds < 0 || seconds > maxCallTime {
		r.outOfRange++
		return
	}
	*to, e.has = seconds, e.has|bit
}

// readTime reads a time, in seconds, of which each is unit seconds. A text may
// say its own unit.
func readTime(v pcommon.Value, unit float64) (seconds float64, ok bool) {
	if v.Type() == pcommon.ValueTypeStr && strings.HasSuffix(v.Str(), "s") {
		unit = second
	}
	n, ok, _ := mlattr.ReadSeconds(v)
	return n * unit, ok
}
