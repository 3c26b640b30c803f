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

const (
	attrDevice   = "repro.device"
	attrPackages = "repro.packages"
)

// VariantOf returns the variant of a failure. Shapes in a message look like its
// other numbers, so they count only with capture.
func VariantOf(f *failure.Failure, span, resource pcommon.Map, capture bool) failure.Variant {
	var form fingerprint.Form
	if capture {
		form.Message = f.Error.Message
	}
	if f.Call != nil {
		form.Call = f.Call.Tree
	}
	for _, m := range [...]pcommon.Map{span, resource} {
		if form.Device == "" {
			form.Device = attr.Text(m, attrDevice)
		}
		if v, ok := m.Get(attrPackages); ok && form.Framework == nil {
			form.Framework = versionsIn(v)
		}
	}
	var v failure.Variant
	v.ID, v.Text = fingerprint.Variant(form)
	if !capture {
		v.Text = redact.Variant(v.Text)
	}
	return v
}

// versionsIn reads the frameworks of a map of packages, or of a text with
// lines such as "torch==2.4.0" or members such as "torch": "2.4.0".
func versionsIn(v pcommon.Value) (versions []string) {
	found := make(map[string]string)
	switch v.Type() {
	case pcommon.ValueTypeMap:
		for _, name := range mlattr.Frameworks() {
			found[name] = attr.Text(v.Map(), name)
		}
	case pcommon.ValueTypeStr:
		last := ""
		for word := range strings.FieldsFuncSeq(v.Str(), func(r rune) bool { return strings.ContainsRune(" \"',:;={}\n\r\t", r) }) {
			if found[last] == "" && word[0] >= '0' && word[0] <= '9' {
				found[last] = word
			}
			last = word
		}
	}
	for _, name := range mlattr.Frameworks() {
		if version := found[name]; version != "" && len(version) <= 64 {
			versions = append(versions, name+" "+strings.Clone(version))
		}
	}
	return versions
}
