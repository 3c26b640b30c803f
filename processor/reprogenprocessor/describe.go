package reprogenprocessor

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fingerprint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

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
		parts.Target = f.Call.Target()
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
