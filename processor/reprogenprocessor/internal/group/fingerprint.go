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
	if own := mlattr.FirstText(span.Attributes(), attrFingerprint); own != "" {
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
		if status := statusOf(span.Attributes(), f.Error.Message, ofRequest); status != "" {
			fields = append(fields, "status", status)
		}
	}
	return Digest(fields...)
}

// Digest returns 16 digits that stand for fields.
func Digest(fields ...string) string {
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
	if host := mlattr.FirstText(resource, mlattr.HostName); len(host) > 2 {
		message = strings.ReplaceAll(message, host, "<host>")
	}
	if !capture {
		message = content.Template(message)
	}
	return template(message)
}

// statusOf returns the HTTP status that a request or a model call failed with,
// or "". Clients of models write it into the message.
func statusOf(attributes pcommon.Map, message string, ofRequest bool) string {
	for _, k := range mlattr.HTTPStatusKeys {
		if v, ok := attributes.Get(k); ok && v.Type() == pcommon.ValueTypeInt && v.Int() >= 400 {
			return strconv.FormatInt(v.Int(), 10)
		}
	}
	if !ofRequest {
		return ""
	}
	return cmp.Or(mlattr.StatusIn(mlattr.FirstText(attributes, mlattr.ErrorType)), mlattr.StatusIn(message))
}

const maxTemplate = 512

var (
	// word is a piece of a message, or a URL in it.
	word   = regexp.MustCompile(`[\w.:+-]+://[^ \t\r\n"'<>)]*|[\w.:+-]+`)
	digits = regexp.MustCompile(`[0-9]+`)
)

// words are the forms of a word with a digit that differs between two messages of one
// defect. The first that fits counts.
var words = [...]struct {
	name string
	form *regexp.Regexp
}{
	{"<uuid>", regexp.MustCompile(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)},
	{"<ip>", regexp.MustCompile(`^[0-9]*(?:\.[0-9]*){3}(?::.*)?$`)},
	{"<ip>", regexp.MustCompile(`^(?:[0-9a-fA-F]*:){7}[0-9a-fA-F]*$|^[0-9a-fA-F:]*::[0-9a-fA-F:]*$`)},
	{"<date>", regexp.MustCompile(`^[0-9:.TZ+-]{4}-[0-9:.TZ+-]{2}-[0-9:.TZ+-]{2,}$`)},
	{"<num>", regexp.MustCompile(`^[0-9+.-][0-9.eE+-]*$`)},
	{"<size>", regexp.MustCompile(`^[0-9+.-][0-9.eE+-]*[KMGTiB]*B$`)},
	{"<hex>", regexp.MustCompile(`^0x[0-9a-fA-F]+$|^[0-9a-fA-F]{8,}$`)},
}

// template replaces what differs between two messages of one defect:
// numbers, sizes, hex strings, UUIDs, IP addresses, URLs and dates. Lists of
// numbers become one. At most the first 512 bytes are looked at.
func template(message string) string {
	message = attr.Cut(message, maxTemplate)
	if hasDigit(message) || strings.Contains(message, "://") {
		message = word.ReplaceAllStringFunc(message, wordTemplate)
	}
	if strings.Contains(message, "<num>") {
		message = sizes.ReplaceAllString(numbers.ReplaceAllString(message, "<num>"), "<size>")
	}
	return message
}

// hasDigit spares most texts the look for what has numbers in it.
func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

func wordTemplate(w string) string {
	if strings.Contains(w, "://") {
		return "<url>"
	}
	if !hasDigit(w) {
		return w
	}
	punctuated := w
	w = strings.TrimRight(punctuated, ".:+-")
	rest := punctuated[len(w):]
	for _, known := range words {
		if known.form.MatchString(w) {
			return known.name + rest
		}
	}
	// The words around numbers stay: layer12.weight, cuda:0.
	return digits.ReplaceAllString(w, "<n>") + rest
}

var (
	// numbers is a list of numbers, which becomes one, so that shapes of other rank are the
	// same message.
	numbers = regexp.MustCompile(`<num>(?:(?:, ?| )<num>)+`)
	sizes   = regexp.MustCompile(`<num> (?:[KMGT]i?B|bytes)`)
)
