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
	// escaped says that the exception left the span's scope: the SDK then sets
	// the status too.
	escaped bool
}

// recordException adds the event that the Python SDK's record_exception adds.
func recordException(span ptrace.Span, at time.Time, e exception) {
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.SetTimestamp(pcommon.NewTimestampFromTime(at))
	escaped := "False"
	if e.escaped {
		escaped = "True"
	}
	put(event.Attributes(), []attr{
		{"exception.type", e.kind},
		{"exception.message", e.message},
		{"exception.stacktrace", e.trace},
		{"exception.escaped", escaped},
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
