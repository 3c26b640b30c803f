package group

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// attrFingerprint is what a client calls its failure.
const attrFingerprint = "repro.fingerprint"

// version is part of every fingerprint. A change of a rule that moves all
// failures to other groups raises it; one that moves some leaves the others
// where they are.
const version = "1"

// Fingerprint returns the group of a failure: the first 16 hex digits of a SHA-256 of what
// makes two failures the same defect. Hosts, processes, ranks, ids and device numbers have
// no part in it. It is computed from the span and
// its resource alone, so that the span can carry it before any file exists.
// ofRequest reports whether the span is an HTTP request or the call of a model.
// Without capture, no message or what is computed from one has a part in it.
func Fingerprint(f *failure.Failure, span ptrace.Span, resource pcommon.Map, ofRequest, capture bool) string {
	fields := []string{version, f.Service}
	if own := attr.Text(span.Attributes(), attrFingerprint); own != "" {
		fields = append(fields, "override", own)
	} else {
		fields = append(fields, "parts", string(f.Kind), rootType(f), targetOf(f, span), messageOf(f, resource, capture))
		for _, frame := range f.Error.Cause.Frames {
			// Folders of runs and sessions have numbers in their names.
			fields = append(fields, template(frame.Module), frame.Function)
		}
		if f.Trigger != "" {
			fields = append(fields, "trigger", f.Trigger)
		}
		if status := statusOf(span.Attributes(), f.Error.Message, ofRequest); status != 0 {
			fields = append(fields, "status", strconv.FormatInt(status, 10))
		}
	}
	// A JSON array keeps two fields from running into each other.
	text, _ := json.Marshal(fields)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// rootType returns the class of the root cause.
func rootType(f *failure.Failure) string { return cmp.Or(f.Error.Cause.Type, f.Error.Type) }

// targetOf returns the call that failed, as module:function, or else a span's code or name
// with its numbers taken out.
func targetOf(f *failure.Failure, span ptrace.Span) (target string) {
	if f.Call != nil {
		target = f.Call.Target()
	}
	return cmp.Or(target, attr.QualifiedName(span.Attributes()), template(span.Name()))
}

// generic are the classes that unlike failures have.
var generic = map[string]bool{
	"": true, "Exception": true, "BaseException": true, "Error": true, "RuntimeError": true,
	"builtins.Exception": true, "builtins.RuntimeError": true,
}

// messageOf returns the message's template, or "" where class and frames suffice.
func messageOf(f *failure.Failure, resource pcommon.Map, capture bool) string {
	if len(f.Error.Cause.Frames) > 0 && !generic[rootType(f)] {
		return ""
	}
	// A secret in the message must not be guessable from the hash.
	message := redact.Text(attr.Cut(f.Error.Message, 1024))
	if host := attr.Text(resource, mlattr.HostName); len(host) > 2 {
		message = strings.ReplaceAll(message, host, "<host>")
	}
	if !capture {
		message = content.Template(message)
	}
	return template(message)
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
