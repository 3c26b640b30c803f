package clients

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// haystack is the vocabulary of Haystack's own tracer. A component that asks a model is
// known by its class. Its usage is JSON in its output, which the general rules read. It
// is taken from its source and was not run.
func haystack() table.Table {
	return table.Table{
		Name:        "haystack",
		Title:       "Haystack",
		Page:        "https://docs.haystack.deepset.ai/docs/tracing",
		KeyPrefixes: []string{"haystack."},
		Packages:    []string{"haystack"},
		Span: []table.Alias{
			{Source: "haystack.component.type", Canonical: mlattr.GenAIOperationName, Reads: componentKind, Words: map[string]string{
				"Generator": mlattr.OperationChat, "Embedder": mlattr.OperationEmbeddings,
			}},
		},
	}
}

// componentKind returns what a component's class ends in.
func componentKind(class string) string {
	for _, kind := range [...]string{"Generator", "Embedder"} {
		if strings.HasSuffix(class, kind) {
			return kind
		}
	}
	return ""
}
