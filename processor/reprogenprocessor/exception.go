package reprogenprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
)

// errorOf reads what went wrong from the last exception event, then from the
// attributes that clients use, then from the status.
func errorOf(span ptrace.Span) failure.Error {
	var e failure.Error
	events := span.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if event := events.At(i); event.Name() == attrExceptionEvent {
			e = exceptionOf(event.Attributes())
			break
		}
	}
	if e.Type == "" && e.Message == "" {
		e = exceptionOf(span.Attributes())
	}
	c := newCopier()
	if e.Type == "" {
		e.Type = c.text(firstText(span.Attributes(), mlattr.ErrorType, attrSnakepitErrorKind), maxValueBytes)
	}
	if e.Type == otherError {
		e.Type = ""
	}
	if e.Message == "" {
		e.Message = c.text(firstText(span.Attributes(), mlattr.ErrorMessage, attrSnakepitError), maxValueBytes)
	}
	if e.Message == "" {
		e.Message = c.text(span.Status().Message(), maxValueBytes)
	}
	return e
}

func exceptionOf(attributes pcommon.Map) failure.Error {
	c := newCopier()
	return failure.Error{
		Type:    c.text(firstText(attributes, attrExceptionType), maxValueBytes),
		Message: c.text(firstText(attributes, attrExceptionMessage), maxValueBytes),
		Stack:   c.text(firstText(attributes, attrExceptionStacktrace), maxStackBytes),
	}
}

func sameError(a, b failure.Error) bool {
	return a.Type == b.Type && a.Message == b.Message
}
