package vocabulary

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// maxEvents bounds the events of a span that are read. SDKs send at most 128.
const maxEvents = 128

// timeFirstToken adds the time to the first token where the span has the
// instant of the first token instead. It adds nothing if the instant is outside
// the span: two clocks differ. An event may come after the end of the span: its
// clock is that of the span, and some clients end the span of a stream when the
// stream begins. The time that a client reports of an answer that was not
// streamed is that of the whole answer, so it is no usable fact.
func (r *Reader) timeFirstToken(span ptrace.Span, f *Facts) {
	if first := f.At(slotFirstChunk); first != nil {
		if stream := f.At(slotStream); stream != nil && !stream.Bool && !first.Own {
			first.Unreadable = true
		}
		return
	}
	var came pcommon.Timestamp
	start, end := span.StartTimestamp(), span.EndTimestamp()
	if at := f.At(slotFirstTokenAt); at != nil {
		came = pcommon.Timestamp(at.Int)
	} else if f.Systems&r.streams != 0 {
		came = r.firstTokenEvent(span, f.Systems)
		end = max(end, came)
	}
	if came == 0 || start == 0 || came < start || came > end {
		return
	}
	if fact := f.reserve(slotFirstChunk, "", rankDerived); fact != nil {
		fact.Kind, fact.Double = table.KindSeconds, float64(came-start)/1e9
	}
}

// firstTokenEvent returns the time of the first event that a known client
// writes at a first token, or zero.
func (r *Reader) firstTokenEvent(span ptrace.Span, known System) pcommon.Timestamp {
	dropped := span.DroppedEventsCount() > 0
	events := span.Events()
	for i := range min(events.Len(), maxEvents) {
		event := events.At(i)
		for j := range r.firstTokens {
			rule := &r.firstTokens[j]
			if event.Name() == rule.Event && rule.system&known != 0 && (!rule.Repeated || !dropped) {
				return event.Timestamp()
			}
		}
	}
	return 0
}
