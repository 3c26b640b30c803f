package image

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// oneSpan returns a span of a tenth of a second that ends now, and the entry of
// what was sent for it. Spans of different numbers have different ids.
func oneSpan(service string, number byte) (ptrace.Traces, *sentlog.Span) {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("one")
	span.SetTraceID(pcommon.TraceID{0xe2, number})
	span.SetSpanID(pcommon.SpanID{0xe2, number})
	now := time.Now()
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-100 * time.Millisecond)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	return traces, &sentlog.Span{
		TraceID: span.TraceID().String(),
		SpanID:  span.SpanID().String(),
		Name:    span.Name(),
	}
}
