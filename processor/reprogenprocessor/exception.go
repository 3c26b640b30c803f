package reprogenprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/exception"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fingerprint"
)

// errorOf reads what went wrong from the last exception event, then from the
// attributes that clients use, then from the status. What frameworks wrapped
// around the exception is taken away.
func errorOf(span ptrace.Span) failure.Error {
	e := lastException(span)
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
	if e.Type == "" && e.Message == "" && e.Stack == "" {
		if printed, ok := printedException(span.Attributes()); ok {
			return finish(printed)
		}
	}
	if e.Message == "" {
		e.Message = c.text(span.Status().Message(), maxValueBytes)
	}
	return finish(exception.Unwrap(e))
}

// lastException reads the last exception event: the one that ended the span.
func lastException(span ptrace.Span) exception.Exception {
	events := span.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if event := events.At(i); event.Name() == attrExceptionEvent {
			return exceptionOf(event.Attributes())
		}
	}
	return exception.Exception{}
}

func exceptionOf(attributes pcommon.Map) exception.Exception {
	c := newCopier()
	return exception.Exception{
		Type:    c.text(firstText(attributes, attrExceptionType), maxValueBytes),
		Message: c.text(firstText(attributes, attrExceptionMessage), maxStackBytes),
		Stack:   c.text(firstText(attributes, attrExceptionStacktrace), maxStackBytes),
	}
}

// printedException reads the traceback that TaskWeaver's code executor
// returns as the code's output.
func printedException(attributes pcommon.Map) (exception.Exception, bool) {
	for _, k := range [...]string{"result", "out.message"} {
		if text := firstText(attributes, k); text != "" {
			if e, ok := exception.FromTraceback(newCopier().text(text, maxStackBytes)); ok {
				return e, true
			}
		}
	}
	return exception.Exception{}, false
}

func finish(e exception.Exception) failure.Error {
	c := newCopier()
	return failure.Error{
		Type:    c.text(e.Type, maxValueBytes),
		Message: c.text(e.Message, maxValueBytes),
		Stack:   e.Stack,
		Cause:   fingerprint.RootCause(e.Stack),
	}
}

// sameError reports whether two spans tell of one error. One client names the
// class with its module, another without.
func sameError(a, b failure.Error) bool {
	return exception.Name(a.Type) == exception.Name(b.Type) && a.Message == b.Message
}

// isEndOfIteration reports whether an error is the way in which Python's
// iterators end, on a span that loads data. TorchTel sends one for each epoch.
func isEndOfIteration(span ptrace.Span, e failure.Error) bool {
	switch exception.Name(e.Type) {
	case "StopIteration", "StopAsyncIteration":
	default:
		return false
	}
	if strings.Contains(strings.ToLower(span.Name()), "dataloader") {
		return true
	}
	phase, ok := span.Attributes().Get(mlattr.Phase)
	return ok && phase.Str() == mlattr.PhaseDataLoad
}
