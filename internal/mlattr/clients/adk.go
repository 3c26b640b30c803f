package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// agentDevelopmentKit is the vocabulary of Google's Agent Development Kit, as far
// as it differs from the conventions. In versions before 2, a call_llm is above the
// generate_content that is the same request.
func agentDevelopmentKit() table.Table {
	return table.Table{
		Name:        "adk",
		Title:       "Agent Development Kit",
		Page:        "https://google.github.io/adk-docs/observability/",
		Scopes:      []string{"gcp.vertex.agent"},
		KeyPrefixes: []string{"gcp.vertex.agent."},
		Wrappers:    []string{"invocation"},
		Span: []table.Alias{
			{Source: "gcp.vertex.agent.invocation_id", Canonical: mlattr.RequestID},
		},
	}
}
