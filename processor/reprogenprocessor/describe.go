package reprogenprocessor

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fingerprint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// describe works out what kind of failure a span is, and which group it
// belongs to. It reads nothing but the span and its resource, so that the
// span can be told before any file exists.
func describe(read *reader, l located) *failure.Failure {
	f := &failure.Failure{Kind: failure.Context, Error: l.err, Trigger: l.trigger, SentBy: originOf(l.sender, l.resource)}
	if v, ok := l.resource.Attributes().Get(mlattr.ServiceName); ok {
		f.Service = serviceName(v)
	}
	caller := l.span
	if l.recorded != nil {
		caller = l.recorded.span
		if l.recorded.from.TraceID != hexTrace(l.span.TraceID()) {
			f.PayloadFrom = &l.recorded.from
		}
	}
	f.Kind, f.Call, f.Reason = recordedCall(read, caller)
	if f.Kind == failure.PythonCode {
		f.Error.Cause.Frames = nil // they are the interpreter's
	}
	f.Fingerprint = fingerprintOf(f, l, read.capture)
	return f
}

// serviceName returns a copy of the value of service.name.
func serviceName(v pcommon.Value) string {
	text, _ := mlattr.Text(v, maxValueBytes)
	return strings.Clone(text)
}

func fingerprintOf(f *failure.Failure, l located, capture bool) string {
	span := l.span
	parts := fingerprint.Parts{
		Service:  f.Service,
		Kind:     string(f.Kind),
		Type:     f.Error.Cause.Type,
		Trigger:  f.Trigger,
		Frames:   f.Error.Cause.Frames,
		Status:   statusOf(span.Attributes(), f.Error.Message),
		Override: firstText(span.Attributes(), attrFingerprint),
	}
	if parts.Type == "" {
		parts.Type = f.Error.Type
	}
	if f.Call != nil {
		parts.Target = f.Call.Target()
	}
	parts.Target = cmp.Or(parts.Target, qualifiedName(span.Attributes()), fingerprint.Template(span.Name()))
	if fingerprint.NeedsMessage(parts.Type, parts.Frames) {
		// A secret in the message must not be guessable from the hash.
		message := redact.Text(cut(f.Error.Message, 1024))
		if host := firstText(l.resource.Attributes(), mlattr.HostName); len(host) > 2 {
			message = strings.ReplaceAll(message, host, "<host>")
		}
		if !capture {
			message = content.Template(message)
		}
		parts.MessageTemplate = fingerprint.Template(message)
	}
	return fingerprint.Sum(parts)
}

func cut(s string, limit int) string { return s[:min(len(s), limit)] }
