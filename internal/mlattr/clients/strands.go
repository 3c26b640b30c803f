package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// strands is the vocabulary of Strands Agents, as far as it differs from the
// conventions. The span of an agent has the usage of the agent's whole life.
func strands() table.Table {
	return table.Table{
		Name:        "strands",
		Title:       "Strands Agents",
		Page:        "https://strandsagents.com/latest/documentation/docs/user-guide/observability-evaluation/traces/",
		Scopes:      []string{"strands."},
		KeyPrefixes: []string{"event_loop.cycle_id"},
		Span: []table.Alias{
			// In milliseconds.
			{Source: "gen_ai.server.time_to_first_token", Canonical: mlattr.GenAITimeToFirstChunk, Factor: 1e-3},
		},
	}
}
