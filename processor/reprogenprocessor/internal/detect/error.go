package detect

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/exception"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// calls has the attributes in which clients report the error of a call.
var (
	calls       = vocabulary.Calls()
	typeKeys    = append([]string{mlattr.ErrorType}, calls.ErrorType...)
	messageKeys = append([]string{mlattr.ErrorMessage}, calls.ErrorMessage...)
)

// errorOf reads what went wrong from the last exception event, then from the
// attributes that clients use, then from the status. What frameworks wrapped
// around the exception is taken away.
func errorOf(span ptrace.Span) failure.Error {
	var e exception.Exception
	if event, raised := spanfact.Exception(span); raised {
		e = exceptionOf(event.Attributes())
	}
	if e.Type == "" && e.Message == "" {
		e = exceptionOf(span.Attributes())
	}
	e.Type = cmp.Or(e.Type, snapshot.Text(mlattr.FirstText(span.Attributes(), typeKeys...), snapshot.MaxValue))
	if e.Type == mlattr.Other {
		e.Type = ""
	}
	e.Message = cmp.Or(e.Message, snapshot.Text(mlattr.FirstText(span.Attributes(), messageKeys...), snapshot.MaxValue))
	if e.Type == "" && e.Message == "" && e.Stack == "" {
		if printed, ok := exception.Printed(span.Attributes()); ok {
			return finish(printed)
		}
	}
	e.Message = cmp.Or(e.Message, snapshot.Text(span.Status().Message(), snapshot.MaxValue))
	return finish(exception.Unwrap(e))
}

func exceptionOf(attributes pcommon.Map) exception.Exception {
	return exception.Exception{
		Type:    snapshot.Text(mlattr.FirstText(attributes, mlattr.ExceptionType), snapshot.MaxValue),
		Message: snapshot.Text(mlattr.FirstText(attributes, mlattr.ExceptionMessage), snapshot.MaxStack),
		Stack:   snapshot.Text(mlattr.FirstText(attributes, attr.ExceptionStacktrace), snapshot.MaxStack),
	}
}

func finish(e exception.Exception) failure.Error {
	return failure.Error{
		Type:    snapshot.Text(e.Type, snapshot.MaxValue),
		Message: snapshot.Text(e.Message, snapshot.MaxValue),
		Stack:   e.Stack,
		Cause:   exception.RootCause(e.Stack),
	}
}

// sameError reports whether two spans have the same error. One client names the
// class with its module, another without.
func sameError(a, b failure.Error) bool {
	return mlattr.ClassName(a.Type) == mlattr.ClassName(b.Type) && a.Message == b.Message
}

// MergedError returns what is known of one error, preferring the one that has a
// stack trace.
func MergedError(a, b failure.Error) failure.Error {
	if a.Stack == "" && b.Stack != "" {
		a, b = b, a
	}
	a.Type = cmp.Or(a.Type, b.Type)
	a.Message = cmp.Or(a.Message, b.Message)
	return a
}
