package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// springAI is the vocabulary of Spring AI, as far as it differs from the
// conventions. Its instrumentation scope is that of Spring Boot. It is taken from
// its source and was not run.
func springAI() table.Table {
	return table.Table{
		Name:        "spring_ai",
		Title:       "Spring AI",
		Page:        "https://docs.spring.io/spring-ai/reference/observability/index.html",
		KeyPrefixes: []string{"spring.ai."},
		Span: []table.Alias{
			{Source: "spring.ai.chat.client.conversation.id", Canonical: mlattr.SessionID},
			{Source: "spring.ai.tool.definition.name", Canonical: mlattr.GenAIToolName},
		},
	}
}
