package group

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fingerprint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// attrFingerprint is what a client calls its failure.
const attrFingerprint = "repro.fingerprint"

// Fingerprint returns the group of a failure. It is computed from the span and
// its resource alone, so that the span can carry it before any file exists.
// ofRequest reports whether the span is an HTTP request or the call of a model.
// Without capture, no message or what is computed from one has a part in it.
func Fingerprint(f *failure.Failure, span ptrace.Span, resource pcommon.Map, ofRequest, capture bool) string {
	parts := fingerprint.Parts{
		Service:  f.Service,
		Kind:     string(f.Kind),
		Type:     cmp.Or(f.Error.Cause.Type, f.Error.Type),
		Trigger:  f.Trigger,
		Frames:   f.Error.Cause.Frames,
		Status:   statusOf(span.Attributes(), f.Error.Message, ofRequest),
		Override: attr.Text(span.Attributes(), attrFingerprint),
	}
	if f.Call != nil {
		parts.Target = f.Call.Target()
	}
	parts.Target = cmp.Or(parts.Target, attr.QualifiedName(span.Attributes()), fingerprint.Template(span.Name()))
	if fingerprint.NeedsMessage(parts.Type, parts.Frames) {
		// A secret in the message must not be guessable from the hash.
		message := redact.Text(attr.Cut(f.Error.Message, 1024))
		if host := attr.Text(resource, mlattr.HostName); len(host) > 2 {
			message = strings.ReplaceAll(message, host, "<host>")
		}
		if !capture {
			message = content.Template(message)
		}
		parts.MessageTemplate = fingerprint.Template(message)
	}
	return fingerprint.Sum(parts)
}

// statusKeys name the status of a response, in the semantic conventions and
// before 1.20.
var statusKeys = [...]string{"http.response.status_code", "http.status_code"}

// statusOf returns the HTTP status that a request or a model call failed with,
// or 0. Clients of models write it into the message.
func statusOf(attributes pcommon.Map, message string, ofRequest bool) int64 {
	for _, k := range statusKeys {
		if v, ok := attributes.Get(k); ok && v.Type() == pcommon.ValueTypeInt && v.Int() >= 400 {
			return v.Int()
		}
	}
	if !ofRequest {
		return 0
	}
	for _, text := range [...]string{attr.Text(attributes, mlattr.ErrorType), attr.Cut(message, 256)} {
		if found := errorStatus.FindStringSubmatch(text); found != nil {
			status, _ := strconv.ParseInt(found[1], 10, 64) // it has three digits
			return status
		}
	}
	return 0
}

// errorStatus is the first number in a text that is a status: "Error code: 429 - …", "429
// Client Error: …", "Client error '429 Too Many Requests' …", "HTTP/1.1 503 …",
// "status_code: 500, …".
var errorStatus = regexp.MustCompile(`(?:^|[] '"(),:;=[{}\t\n])([45][0-9]{2})(?:$|[] '"(),:;=[{}\t\n])`)
