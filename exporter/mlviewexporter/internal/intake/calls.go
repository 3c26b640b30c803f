package intake

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// callEvents is what the events of one span, or the span as an event, record of a
// call.
type callEvents struct {
	// begun reports whether there is a start or an end of a call, ended whether
	// there is an end.
	begun, ended, failed bool
	library, function    string
	// Times are in seconds, 0 if there are none.
	duration, queue, serialize float64
}

// readCall adds the call that a span represents.
func (r *spanReader) readCall(in *input.Span, event table.EventKind, v *spanfact.Fact) {
	part, function := r.ofSpan.Call()
	e := &r.events
	switch {
	case e.ended || event == table.EventCallStop || event == table.EventCallException:
		in.Call = input.RecordedCall
	case part == table.WholeCall || part == table.SharedCall || v.GenAIOperation == mlattr.OperationExecuteTool:
		in.Call = input.WholeCall
	case !e.begun:
		return
	default:
		in.Call = input.WholeCall
	}
	in.Failed = in.Failed || e.failed
	in.Function = cmp.Or(function, in.Function)
	if e.library != "" || e.function != "" {
		in.Library, in.Function = e.library, e.function
	}
	in.Duration, in.Queue, in.Serialize = cmp.Or(e.duration, in.Duration), cmp.Or(e.queue, in.Queue), cmp.Or(e.serialize, in.Serialize)
}

// maxEvents limits the events of a span that are read.
const maxEvents = 1024

// readEvents reads the events of a span, and the span itself if it represents one.
func (r *spanReader) readEvents(events ptrace.SpanEventSlice, own table.EventKind, attrs pcommon.Map) {
	r.events = callEvents{}
	r.readCallEvent(own, attrs)
	for i := max(0, events.Len()-maxEvents); i < events.Len(); i++ {
		event := events.At(i)
		r.readCallEvent(r.vocabulary.Event(event.Name()), event.Attributes())
	}
}

// readCallEvent reads an event about a call, in the client's short names or the
// canonical ones.
func (r *spanReader) readCallEvent(kind table.EventKind, attrs pcommon.Map) {
	e := &r.events
	switch kind {
	case table.EventCallStart:
		e.begun = true
	case table.EventCallStop:
		e.begun, e.ended = true, true
	case table.EventCallException:
		e.begun, e.ended, e.failed = true, true, true
	case table.EventPoolCheckout, table.EventSerialize:
	default:
		return
	}
	decoding := false
	duration := 0.0
	for key, v := range attrs.All() {
		switch key {
		case "library", mlattr.Library:
			e.library = cmp.Or(mlattr.ReadWord(v), e.library)
		case "function", mlattr.Function:
			e.function = cmp.Or(mlattr.ReadWord(v), e.function)
		case "result":
			e.failed = e.failed || cmp.Or(mlattr.ReadWord(v), "ok") != "ok"
		case "direction":
			decoding = mlattr.ReadWord(v) == "decode"
		default:
			switch what, unit := mlattr.CallTimeKey(key); what {
			case "duration":
				duration = seconds(v, unit)
			case "queue_time":
				e.queue = max(e.queue, seconds(v, unit))
			case "serialize_time":
				e.serialize = max(e.serialize, seconds(v, unit))
			}
		}
	}
	switch {
	case kind == table.EventSerialize && !decoding:
		e.serialize = max(e.serialize, duration)
	case e.ended && kind != table.EventSerialize && kind != table.EventPoolCheckout:
		e.duration = duration
	}
}

// seconds returns a duration in seconds, 0 if it is none.
func seconds(v pcommon.Value, unit float64) float64 {
	n, ok := mlattr.ReadCallTime(v, unit)
	if !ok || n < 0 {
		return 0
	}
	return n
}
