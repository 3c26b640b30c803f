package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// langSmith is the vocabulary of LangSmith's SDK where it sends OpenTelemetry.
// It states an operation of a model for steps that are no request, and its
// langsmith.trace.session_name is a project.
func langSmith() table.Table {
	steps := map[string]string{}
	for _, kind := range []string{"prompt", "retriever", "parser", "tool", "chain"} {
		steps[kind] = table.WordFalse
	}
	return table.Table{
		Name:        "langsmith",
		Title:       "LangSmith",
		Page:        "https://docs.langchain.com/langsmith/trace-with-opentelemetry",
		Scopes:      []string{"langsmith"},
		KeyPrefixes: []string{"langsmith."},
		SpanMaps: []table.MapAlias{{Source: "gen_ai.usage.input_token_details", Fields: []table.Alias{
			{Source: "cache_read", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "cache_creation", Canonical: mlattr.GenAICacheCreationTokens},
		}}},
		Span: []table.Alias{
			{Source: "langsmith.span.kind", Canonical: mlattr.RequestCounted, Words: steps},
		},
	}
}
