// Package pythoncode is the kind of artifacts that run code which a model wrote and
// an agent ran.
package pythoncode

import (
	"embed"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/exception"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

// codeKeys have the code that a model wrote.
var codeKeys = vocabulary.Calls().Code

//go:embed script/*.py.tmpl
var files embed.FS

// New returns the kind.
func New() *kind.Kind {
	return &kind.Kind{
		Name:          failure.PythonCode,
		Recognise:     func(span ptrace.Span) bool { return codeOf(span) != "" },
		Read:          func(span ptrace.Span) (*failure.Call, failure.Reason) { return callOf(strings.Clone(codeOf(span))) },
		ForeignFrames: true,
		TakesSeed:     true,
		Parts:         func(jsontree.Object) []string { return []string{"files", "code"} },
		Files:         files,
		Flags:         func(spec jsontree.Object) string { return kind.SetFlag(spec, "payload") },
		Head: func(h *kind.Head, spec jsontree.Object) {
			h.List("code", strings.Split(strings.Trim(spec.Object("payload").Text("code"), "\n"), "\n"), kind.MaxHeadLines-1)
		},
	}
}

// codeOf returns the code of a span of a code interpreter, if that code ran and
// raised: the attribute alone may be anything.
func codeOf(span ptrace.Span) string {
	code := mlattr.FirstText(span.Attributes(), codeKeys...)
	if code == "" || !vocabulary.RunsCode(span.Name()) {
		return ""
	}
	if _, raised := exception.Printed(span.Attributes()); !raised {
		return ""
	}
	return code
}

func callOf(code string) (*failure.Call, failure.Reason) {
	switch {
	case len(code) > failure.MaxCallBytes:
		return nil, failure.TooLarge
	case strings.TrimSpace(code) == "":
		return nil, failure.Invalid
	}
	return &failure.Call{
		Tree: jsontree.Of("code", code),
		// No two texts of a model are the same, so the code is no part of the group.
		Function: "generated code",
		Lossy:    !utf8.ValidString(code),
		Weight:   2 * len(code),
	}, ""
}
