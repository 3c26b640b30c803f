package detect

import (
	"cmp"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
)

const (
	// maxCopied bounds what is copied of a body or an attribute of a record. It
	// is more than any payload or stack trace that is read.
	maxCopied = 1 << 20

	attrLogTraceID = "otelTraceID"
	attrLogSpanID  = "otelSpanID"
)

// hasFailure reports whether a record has an exception or a trigger. What ml_metrics concludes
// of a failure is none of its own.
func hasFailure(record plog.LogRecord) bool {
	if record.EventName() == mlattr.Problem {
		return false
	}
	for k, v := range record.Attributes().All() {
		describes := k == mlattr.ExceptionType || k == mlattr.ExceptionMessage
		if describes && v.Str() != "" || k == attr.Trigger && isTrigger(v) {
			return true
		}
	}
	return false
}

// OfLoader reports whether a record is about the end of a data loader, and no failure.
func (c *Candidate) OfLoader() bool {
	end := spanfact.EndIn(c.Span.Attributes())
	return c.Trigger == "" && end.OfLoader(c.Span)
}

// IsFailure reports whether a record is a failure by itself. One below the
// severity ERROR is about an exception that the program handled: it only
// completes a span that failed all the same.
func (c *Candidate) IsFailure() bool {
	severity := c.Record.SeverityNumber()
	return severity >= plog.SeverityNumberError || severity == plog.SeverityNumberUnspecified || c.Trigger != ""
}

// spanOf makes of a record the span that it would be: failed, with the
// record's attributes, and with the exception as its event.
func spanOf(record plog.LogRecord, scope string) ptrace.Span {
	span := ptrace.NewSpan()
	span.SetTraceID(record.TraceID())
	span.SetSpanID(record.SpanID())
	if record.TraceID().IsEmpty() {
		span.SetTraceID(HexID[pcommon.TraceID](mlattr.FirstText(record.Attributes(), attrLogTraceID)))
		span.SetSpanID(HexID[pcommon.SpanID](mlattr.FirstText(record.Attributes(), attrLogSpanID)))
	}
	span.SetName(cmp.Or(record.EventName(), scope))
	at := cmp.Or(record.Timestamp(), record.ObservedTimestamp())
	span.SetStartTimestamp(at)
	span.SetEndTimestamp(at)
	span.Status().SetCode(ptrace.StatusCodeError)
	message, _ := mlattr.Text(record.Body(), maxCopied)
	span.Status().SetMessage(message)
	event := span.Events().AppendEmpty()
	event.SetName(mlattr.ExceptionEvent)
	event.SetTimestamp(at)
	for k, v := range record.Attributes().All() {
		if strings.HasPrefix(k, "exception.") {
			mlattr.Copy(v, event.Attributes().PutEmpty(k), maxCopied)
		} else {
			mlattr.Copy(v, span.Attributes().PutEmpty(k), maxCopied)
		}
	}
	return span
}

// HexID reads an id in hexadecimal, as Python's logging bridge writes it. It
// returns the empty id for any other text.
func HexID[T ~[16]byte | ~[8]byte](text string) (id T) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(id) {
		id = T(b)
	}
	return id
}
