package redact

import (
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Mark stands where content was withheld.
const Mark = "<REDACTED:content>"

// Word returns a text that has the form of an id, a version or a name, and
// Mark for any other but the empty one.
func Word(text string) string { return formed(content.Node, text) }

// FilePath returns a text that has the form of a file's or a function's name, and Mark for
// any other but the empty one.
func FilePath(text string) string { return formed(content.Path, text) }

func formed(form content.Form, text string) string {
	if form.Fits(text) {
		return text
	}
	return Mark
}

// SpanName returns a span's name if it is one word with the form of a name.
// Otherwise instrumentations put addresses and statements there.
func SpanName(name string) string {
	if name == "" || (content.IsKey(name) || content.IsQualified(name)) && !strings.Contains(name, "://") {
		return name
	}
	return Mark
}

// Attributes returns a copy in which only what ml_guard's list of keys names, and has
// the form that it gives, keeps its value. Of the others the key stays, if it has the
// form of one. It is stricter than ml_guard: a name of several words is withheld, and
// so is a number under a key that nobody knows.
func Attributes(in jsontree.Object) jsontree.Object {
	out := make(jsontree.Object, 0, len(in))
	for _, m := range in {
		if !content.IsKey(m.Key) {
			continue
		}
		if m.Value != nil && (!keeps(m.Key, m.Value) || slices.Contains(namesError, m.Key) && !isErrorType(m.Value)) {
			m.Value = Mark
		}
		out = append(out, m)
	}
	return out
}

// namesError has the keys whose value is an error's class, a word of HTTP's or
// gRPC's for it, or what a program put there instead.
var namesError = append([]string{mlattr.ErrorType, mlattr.ExceptionType, "error_type"}, vocabulary.Calls().ErrorType...)

var httpStatus = regexp.MustCompile(`^[1-5][0-9]{2}$`)

func isErrorType(v any) bool {
	text, ok := v.(string)
	return ok && (text == "" || text == "_OTHER" || httpStatus.MatchString(text) || content.ErrorType(text) != "")
}

var listed = content.NewKeys(nil, nil)

// keeps reports whether a value stays under a key: a number, a switch, a word, or a
// list or a map of these.
func keeps(key string, v any) bool {
	form := listed.Form(key)
	switch form {
	case content.Removed:
		return false
	case content.Label:
		form = content.Node
	case content.Unlisted, content.Point:
		// This project's numbers have keys that end in any name.
		if !strings.HasPrefix(key, "ml.") && !strings.HasPrefix(key, "repro.") {
			return false
		}
	}
	single := func(v any) bool {
		switch v := v.(type) {
		case nil, bool, jsontree.Number:
			return true
		case string:
			return v == "" || form.Fits(v)
		}
		return false
	}
	switch v := v.(type) {
	case jsontree.Array:
		return !slices.ContainsFunc(v, func(e any) bool { return !single(e) })
	case jsontree.Object:
		return !slices.ContainsFunc(v, func(m jsontree.Member) bool { return !content.IsKey(m.Key) || !single(m.Value) })
	}
	return single(v)
}
