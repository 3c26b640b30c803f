package scenario

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// exception is a Python exception as the SDK records it.
type exception struct {
	// kind is the qualified name, without "builtins.".
	kind    string
	message string
	// trace is the text of the stack trace.
	trace string
}

// recordException adds the event of the Python SDK's record_exception.
// `exception.escaped` is the text "False" even if the exception leaves the
// span, because the context manager of a current span does not set it.
func recordException(span ptrace.Span, at time.Time, e exception) {
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.SetTimestamp(pcommon.NewTimestampFromTime(at))
	put(event.Attributes(), []attr{
		{"exception.type", e.kind},
		{"exception.message", e.message},
		{"exception.stacktrace", e.trace},
		{"exception.escaped", "False"},
	})
}

// fail imitates an exception that leaves a span of the Python SDK: an event and
// an error status whose text is the unqualified type, a colon and the message.
func fail(span ptrace.Span, at time.Time, e exception) {
	recordException(span, at, e)
	short := e.kind
	for i := len(short) - 1; i >= 0; i-- {
		if short[i] == '.' {
			short = short[i+1:]
			break
		}
	}
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage(short + ": " + e.message)
}
