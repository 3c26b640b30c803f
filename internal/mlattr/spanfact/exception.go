package spanfact

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Exception returns the event of the exception that left a span, the last one, and
// whether there is one.
func Exception(s ptrace.Span) (event ptrace.SpanEvent, raised bool) {
	events := s.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if event = events.At(i); event.Name() == mlattr.ExceptionEvent {
			return event, true
		}
	}
	return ptrace.SpanEvent{}, false
}

// ExceptionType returns the attribute with the class of the exception that left a span.
func ExceptionType(s ptrace.Span) (class pcommon.Value, ok bool) {
	if event, raised := Exception(s); raised {
		return event.Attributes().Get(mlattr.ExceptionType)
	}
	return class, false
}

// ExceptionClass returns the class of the exception that left a span, "" if it names
// none, and whether there is an exception.
func ExceptionClass(s ptrace.Span) (class string, raised bool) {
	event, raised := Exception(s)
	if raised {
		if v, ok := event.Attributes().Get(mlattr.ExceptionType); ok {
			class, _ = mlattr.ReadText(v)
		}
	}
	return class, raised
}

// RaisedInCall reports whether an exception left a span that is a whole call, and that
// a Reader has read into f. A future may catch the exception and leave the span's
// status unset.
func RaisedInCall(f *vocabulary.Facts, s ptrace.Span) bool {
	if part, _ := f.Call(); part != table.WholeCall {
		return false
	}
	_, raised := Exception(s)
	return raised
}

// ExceptionMessage returns the text of the exception that left a span, or "".
func ExceptionMessage(s ptrace.Span) string {
	if event, raised := Exception(s); raised {
		if v, ok := event.Attributes().Get(mlattr.ExceptionMessage); ok && v.Type() == pcommon.ValueTypeStr {
			return v.Str()
		}
	}
	return ""
}
