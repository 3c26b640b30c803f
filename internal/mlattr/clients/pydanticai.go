package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// pydanticAI is the vocabulary of pydantic-ai, as far as it differs from the
// conventions. The span of an agent sums up its requests under names of its own,
// gen_ai.aggregated_usage.*; versions before 2 used those of a request.
func pydanticAI() table.Table {
	return table.Table{
		Name:        "pydantic_ai",
		Title:       "Pydantic AI",
		Page:        "https://ai.pydantic.dev/logfire/",
		Scopes:      []string{"pydantic-ai"},
		KeyPrefixes: []string{"pydantic_ai.", "gen_ai.aggregated_usage."},
		Wrappers:    []string{"agent run"},
		Span: []table.Alias{
			{Source: "operation.cost", Canonical: mlattr.UsageCost},
			// Before version 2.
			{Source: "agent_name", Canonical: mlattr.GenAIAgentName},
		},
	}
}
