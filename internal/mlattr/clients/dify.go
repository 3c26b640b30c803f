package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// dify is the vocabulary of Dify, as far as it differs from the conventions. It
// is taken from its source and was not run.
func dify() table.Table {
	return table.Table{
		Name:        "dify",
		Title:       "Dify",
		Page:        "https://docs.dify.ai/",
		KeyPrefixes: []string{"dify.", "gen_ai.user.time_to_first_token"},
		Span: []table.Alias{
			// In nanoseconds.
			{Source: "gen_ai.user.time_to_first_token", Canonical: mlattr.GenAITimeToFirstChunk, Factor: 1e-9},
			{Source: "dify.conversation.id", Canonical: mlattr.SessionID},
			{Source: "dify.node.total_price", Canonical: mlattr.UsageCost},
			{Source: "dify.node.currency", Canonical: mlattr.UsageCurrency},
			{Source: "dify.user.id", Canonical: mlattr.User, Kind: table.KindSecret},
		},
	}
}
