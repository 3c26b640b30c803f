package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// genkit is the vocabulary of Firebase Genkit. Its request, its answer and its usage are
// JSON, under names that the general rules read.
func genkit() table.Table {
	return table.Table{
		Name:          "genkit",
		Title:         "Genkit",
		Page:          "https://genkit.dev/docs/observability/getting-started/",
		Scopes:        []string{"genkit-tracer"},
		KeyPrefixes:   []string{"genkit:"},
		ToolArguments: []string{"genkit:input"},
		Span: []table.Alias{
			{Source: "genkit:metadata:subtype", Canonical: mlattr.GenAIOperationName, Words: map[string]string{
				"model": mlattr.OperationChat, "embedder": mlattr.OperationEmbeddings,
				"tool": mlattr.OperationExecuteTool, "tool.v2": mlattr.OperationExecuteTool,
			}},
		},
	}
}
