package reprogenprocessor

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// recording is the call of a span that did not fail itself. Snakepit's process
// server answers a call that raised, and does not tell its span; the span in
// Elixir knows the error and not the call. They have an id in common.
type recording struct {
	// span has the attributes of the call, and nothing else but its ids.
	span ptrace.Span
	from failure.Origin
}

// sawCall keeps the call of a span that did not fail, if something may still
// refer to it, and adds it to the failure that waits for it.
func (r *recorder) sawCall(l *located) {
	correlation := correlationOf(l.span.Attributes())
	id, waits := r.book.byCorrelation(correlation)
	if !waits {
		// A log record may have told that this span failed.
		id, waits = r.book.at(l.span.TraceID(), l.span.SpanID())
	}
	if correlation == "" && !waits {
		return
	}
	rec, weight := r.recordingOf(l)
	if correlation != "" && weight <= r.maxRecording() {
		r.calls.put(correlation, rec, weight+spanOverhead, originOf(l.sender, l.resource), r.now())
	}
	if !waits {
		return
	}
	kind, call, reason := recordedCall(r.reader, rec.span)
	if weight > r.maxRecording() {
		// The copy may be without some of the arguments: that is another call.
		kind, call, reason = failure.Context, nil, payload.TooLarge
	}
	group, ok := r.book.update(id, func(f *failure.Failure) {
		if f.Call != nil || call == nil && reason != payload.TooLarge {
			return
		}
		f.Kind, f.Call, f.Reason = kind, call, reason
		if call != nil {
			f.Weight += call.Weight
		}
		if f.Span.TraceID != rec.from.TraceID {
			f.PayloadFrom = &rec.from
		}
	})
	if ok {
		mark(l.span.Attributes(), group, true)
	}
}

// maxRecording is what a recording may weigh: a call, and what describes it.
func (r *recorder) maxRecording() int64 { return int64(r.cfg.MaxPayloadBytes) + 2<<10 }

// recordingOf copies what of a span is needed later, and says how many bytes
// it takes.
func (r *recorder) recordingOf(l *located) (recording, int64) {
	c := newCopier()
	rec := recording{span: ptrace.NewSpan(), from: failure.Origin{
		Name:    c.text(l.span.Name(), maxValueBytes),
		TraceID: hexTrace(l.span.TraceID()),
		SpanID:  hexSpan(l.span.SpanID()),
	}}
	if v, ok := l.resource.Attributes().Get(mlattr.ServiceName); ok {
		rec.from.Service = serviceName(v)
	}
	// Nothing but these is read of a call, and what is not weighed would have
	// no bound.
	var weight int64
	keep := func(name string) {
		if v, ok := l.span.Attributes().Get(name); ok {
			size, ok := mlattr.Size(v, int(r.maxRecording()-weight))
			if weight += valueOverhead + int64(size); ok {
				mlattr.Copy(v, rec.span.Attributes().PutEmpty(name), size)
			}
		}
	}
	for _, part := range r.cfg.CallAttributes.parts() {
		for _, name := range part.names {
			keep(name)
			if part.key == "payload" {
				keep(name + sizeSuffix)
				keep(name + sha256Suffix)
				keep(name + uriSuffix)
			}
		}
	}
	for _, name := range [...]string{attrCodeFunctionName, attrCodeNamespace, attrCodeFunction} {
		keep(name)
	}
	return rec, weight
}
