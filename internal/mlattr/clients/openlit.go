package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// openLIT is the vocabulary of OpenLIT, as far as it differs from the
// conventions.
func openLIT() table.Table {
	return table.Table{
		Name:        "openlit",
		Title:       "OpenLIT",
		Page:        "https://docs.openlit.io/latest/sdk/overview",
		Scopes:      []string{"openlit."},
		KeyPrefixes: []string{"openlit."},
		Span: []table.Alias{
			{Source: "gen_ai.server.time_to_first_token", Canonical: mlattr.GenAITimeToFirstChunk},
		},
	}
}
