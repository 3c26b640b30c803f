package spans

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// spanKinds and statusCodes are values of series.SpanKind and series.StatusCode.
var (
	spanKinds = [...]string{
		ptrace.SpanKindUnspecified: "SPAN_KIND_UNSPECIFIED", ptrace.SpanKindInternal: "SPAN_KIND_INTERNAL", ptrace.SpanKindServer: "SPAN_KIND_SERVER",
		ptrace.SpanKindClient: "SPAN_KIND_CLIENT", ptrace.SpanKindProducer: "SPAN_KIND_PRODUCER", ptrace.SpanKindConsumer: "SPAN_KIND_CONSUMER",
	}
	statusCodes = [...]string{
		ptrace.StatusCodeUnset: "STATUS_CODE_UNSET", ptrace.StatusCodeOk: "STATUS_CODE_OK", ptrace.StatusCodeError: "STATUS_CODE_ERROR",
	}
)

// nameOf returns the name of a number, _OTHER for one that the protocol does not know.
func nameOf[N ~int32](names []string, number N) string {
	if number < 0 || int(number) >= len(names) {
		return mlattr.Other
	}
	return names[number]
}

// addDuration adds the duration of a span, whatever the span is, in milliseconds. That of
// a span whose clock went back is 0.
func (r *Reader) addDuration(span ptrace.Span) {
	up := next(&r.durations) // Reset has left it empty
	up.Source, up.Series = r.hostSource, series.SpanDuration
	if start, end := span.StartTimestamp(), span.EndTimestamp(); end > start {
		up.Value = float64(end-start) / 1e6
	}
	overflow := ""
	if is, _ := r.ofSpan.BoolAt(vocabulary.SlotOverflow); is {
		overflow = "true"
	}
	up.Labels = [series.MaxLabels]string{
		nameOf(spanKinds[:], span.Kind()), nameOf(statusCodes[:], span.Status().Code()),
		r.ofSpan.TextAt(vocabulary.SlotOperation), r.ofSpan.TextAt(vocabulary.SlotPhase), r.ofSpan.TextAt(vocabulary.SlotHTTPRoute), r.ofSpan.TextAt(vocabulary.SlotRPCMethod), overflow,
	}
}

// Durations returns those of all spans. The caller must not keep it.
func (r *result) Durations() []streams.Update { return r.durations }
