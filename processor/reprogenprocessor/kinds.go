package reprogenprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// attrCode is where TaskWeaver's spans have the code that a model wrote.
const attrCode = "code"

// recordedCall finds what of a span can be replayed. Where nothing can, the
// kind is Context and the reason says why.
func recordedCall(read *reader, span ptrace.Span) (failure.Kind, *payload.Call, payload.Reason) {
	recorded := read.hasCall(span.Attributes())
	if !recorded {
		if code := generatedCode(span); code != "" {
			call, reason := payload.OfCode(strings.Clone(code), read.maxBytes)
			return kindOf(failure.PythonCode, call), call, reason
		}
	}
	if chat, ok := conversation(span.Attributes()); ok && !recorded {
		call, reason := payload.OfChat(chat, read.maxBytes)
		return kindOf(failure.GenAIChat, call), call, reason
	}
	call, reason := read.call(span.Attributes())
	return kindOf(failure.PythonCall, call), call, reason
}

func kindOf(kind failure.Kind, call *payload.Call) failure.Kind {
	if call == nil {
		return failure.Context
	}
	return kind
}

// generatedCode returns the code of a span of an agent's code interpreter, if
// that code ran and raised: an attribute named "code" alone may be anything.
func generatedCode(span ptrace.Span) string {
	if !strings.HasPrefix(span.Name(), "CodeInterpreter") && !strings.HasPrefix(span.Name(), "CodeExecutor") {
		return ""
	}
	code := firstText(span.Attributes(), attrCode)
	if code == "" {
		return ""
	}
	if _, raised := printedException(span.Attributes()); !raised {
		return ""
	}
	return code
}
