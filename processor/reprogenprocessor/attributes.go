package reprogenprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fingerprint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// Attributes that are read.
const (
	attrPayload       = "repro.payload"
	attrPayloadSize   = "repro.payload.size"
	attrPayloadSHA256 = "repro.payload.sha256"
	attrFingerprint   = "repro.fingerprint"

	attrExceptionEvent      = "exception"
	attrExceptionType       = "exception.type"
	attrExceptionMessage    = "exception.message"
	attrExceptionStacktrace = "exception.stacktrace"
	attrCodeFunctionName    = "code.function.name"
	attrSnakepitError       = "snakepit.grpc.error"
	attrSnakepitErrorKind   = "snakepit.grpc.error_kind"
)

// Attributes that are written.
const (
	attrArtifactFingerprint = "repro.artifact.fingerprint"
	attrArtifactPath        = "repro.artifact.path"
)

// otherError is the error.type of a failure that names none, as the semantic
// conventions have it. Clients may send it, and group.json says it.
const otherError = "_OTHER"

func isPayloadKey(key string) bool {
	return key == attrPayload || strings.HasPrefix(key, attrPayload+".")
}

func hasPayload(span ptrace.Span) bool {
	v, ok := span.Attributes().Get(attrPayload)
	return ok && v.Type() == pcommon.ValueTypeStr && v.Str() != ""
}

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

func firstText(attributes pcommon.Map, keys ...string) string {
	for _, k := range keys {
		if v, ok := attributes.Get(k); ok && v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
			return v.Str()
		}
	}
	return ""
}

// decodePayload reads the span's payload, or says why there is none to use.
func decodePayload(attributes pcommon.Map) (*payload.Call, payload.Reason) {
	v, ok := attributes.Get(attrPayload)
	if !ok {
		return nil, payload.NoPayload
	}
	if v.Type() != pcommon.ValueTypeStr {
		return nil, payload.Invalid
	}
	declared := payload.Declared{Size: -1, SHA256: firstText(attributes, attrPayloadSHA256)}
	if size, ok := attributes.Get(attrPayloadSize); ok && size.Type() == pcommon.ValueTypeInt {
		declared.Size = size.Int()
	}
	// The tree must not share memory with the batch.
	return payload.Decode(strings.Clone(v.Str()), declared)
}

// describe works out what kind of failure a span is, and which group it
// belongs to. It reads nothing but the span and its resource, so that the
// span can be told before any file exists.
func describe(l located) *failure.Failure {
	f := &failure.Failure{Kind: failure.Context, Error: errorOf(l.span)}
	if v, ok := l.resource.Attributes().Get(mlattr.ServiceName); ok {
		c := newCopier()
		f.Service = c.text(v.AsString(), maxValueBytes)
	}
	f.Call, f.Reason = decodePayload(l.span.Attributes())
	if f.Call != nil {
		f.Kind = failure.PythonCall
	}
	f.Error.Cause = fingerprint.RootCause(f.Error.Stack)
	f.Fingerprint = fingerprintOf(f, l.span)
	return f
}

func fingerprintOf(f *failure.Failure, span ptrace.Span) string {
	parts := fingerprint.Parts{
		Service:  f.Service,
		Kind:     string(f.Kind),
		Type:     f.Error.Cause.Type,
		Frames:   f.Error.Cause.Frames,
		Override: firstText(span.Attributes(), attrFingerprint),
	}
	if parts.Type == "" {
		parts.Type = f.Error.Type
	}
	switch name := firstText(span.Attributes(), attrCodeFunctionName); {
	case f.Call != nil:
		parts.Target = f.Call.Module + ":" + f.Call.Function
	case name != "":
		parts.Target = name
	default:
		parts.Target = fingerprint.Template(span.Name())
	}
	if fingerprint.NeedsMessage(parts.Type, parts.Frames) {
		// A secret in the message must not be guessable from the hash.
		parts.MessageTemplate = fingerprint.Template(redact.Text(cut(f.Error.Message, 1024)))
	}
	return fingerprint.Sum(parts)
}

func cut(s string, limit int) string { return s[:min(len(s), limit)] }
