package reprogenprocessor

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/artifact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// attrCode is where TaskWeaver's spans have the code that a model wrote.
const attrCode = "code"

// recordedCall finds what of a span can be replayed. Where nothing can, the
// kind is Context and the reason says why.
func recordedCall(read *reader, span ptrace.Span) (failure.Kind, *payload.Call, payload.Reason) {
	if firstText(span.Attributes(), attrKind) == string(failure.Context) {
		return failure.Context, nil, payload.Unwanted
	}
	recorded := read.hasCall(span.Attributes())
	if !recorded {
		if code := generatedCode(span); code != "" {
			call, reason := payload.OfCode(strings.Clone(code), read.maxBytes)
			return kindOf(failure.PythonCode, call), call, reason
		}
	}
	if chat, ok := conversation(span, read.maxBytes); ok && !recorded {
		call, reason := payload.OfChat(chat, read.maxBytes)
		return kindOf(failure.GenAIChat, call), call, reason
	}
	call, reason := read.call(span.Attributes())
	return kindOf(failure.PythonCall, call), call, reason
}

// withoutCall returns a failure that has no call as one of the kinds that need
// none: a request, or a step of a training. The span as it was kept is read, and
// what is around it, when the artefact is written; the group is that of the span
// alone.
func withoutCall(f *failure.Failure, cfg *Config) *failure.Failure {
	sent := f.Reason != payload.NoPayload && f.Reason != payload.NoArguments && f.Reason != payload.NoTarget
	if f.Kind != failure.Context || sent {
		return f
	}
	for _, as := range [...]struct {
		kind failure.Kind
		read func(*failure.Failure, *Config) (*payload.Call, payload.Reason, bool)
	}{{failure.HTTPRequest, asRequest}, {failure.TrainStep, asTraining}} {
		call, reason, ok := as.read(f, cfg)
		if !ok {
			continue
		}
		c := *f
		c.Kind, c.Call, c.Reason = kindOf(as.kind, call), call, reason
		return &c
	}
	if artifact.IsStatement(f.Span.Attributes) {
		c := *f
		c.Reason = payload.Statement
		return &c
	}
	return f
}

// anyCut reports whether the copy of a text in a tree may be without its middle.
func anyCut(cfg *Config, tree any) bool {
	switch v := tree.(type) {
	case string:
		return len(v) > cfg.Traces.AttributeBytes-16 && strings.Contains(v, gap)
	case jsontree.Array:
		return slices.ContainsFunc(v, func(e any) bool { return anyCut(cfg, e) })
	case jsontree.Object:
		return slices.ContainsFunc(v, func(m jsontree.Member) bool { return anyCut(cfg, m.Value) })
	}
	return false
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
