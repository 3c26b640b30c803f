// Package attr reads attributes by name. It holds the names that several
// packages of repro_gen read.
package attr

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Attributes of exceptions and of code, by the semantic conventions.
const (
	ExceptionStacktrace = "exception.stacktrace"
	CodeFunctionName    = "code.function.name"
	CodeNamespace       = "code.namespace" // until semantic conventions 1.30
	CodeFunction        = "code.function"
)

// Attributes that clients send for repro_gen.
const (
	// Trigger says why a span failed without an exception.
	Trigger = "repro.trigger"
	// Rank is the rank of a process in its run.
	Rank = "repro.rank"
)

// First returns the first of the attributes that is there. An empty text is
// not there.
func First(attributes pcommon.Map, keys []string) (pcommon.Value, bool) {
	for _, k := range keys {
		if v, ok := attributes.Get(k); ok && v.Type() != pcommon.ValueTypeEmpty && (v.Type() != pcommon.ValueTypeStr || v.Str() != "") {
			return v, true
		}
	}
	return pcommon.Value{}, false
}

// QualifiedName returns the name of the code that a span is about, such as
// "pkg.mod.Class.method", or "". It may share memory with the batch.
func QualifiedName(attributes pcommon.Map) string {
	if name := mlattr.FirstText(attributes, CodeFunctionName); name != "" {
		return name
	}
	namespace, function := mlattr.FirstText(attributes, CodeNamespace), mlattr.FirstText(attributes, CodeFunction)
	if namespace == "" || function == "" {
		return ""
	}
	return namespace + "." + function
}

// Cut returns at most limit bytes of a text.
func Cut(s string, limit int) string { return s[:min(len(s), limit)] }

// IsRequest reports whether a span is that of an HTTP request, by its method's name in
// the semantic conventions and before 1.20.
func IsRequest(attributes pcommon.Map) bool {
	return mlattr.FirstText(attributes, "http.request.method", "http.method") != ""
}

// IsModelCall reports whether a span is that of one request to a model, whether or not
// it has what was asked.
func IsModelCall(attributes pcommon.Map) bool {
	return vocabulary.IsModelRequest(mlattr.FirstText(attributes, vocabulary.OperationKeys()...))
}
