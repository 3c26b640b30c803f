package mlattr

// dify is the vocabulary of Dify, as far as it differs from the conventions. It
// is taken from its source and was not run.
func dify() Table {
	return Table{
		Name:        "dify",
		Title:       "Dify",
		Page:        "https://docs.dify.ai/",
		KeyPrefixes: []string{"dify.", "gen_ai.user.time_to_first_token"},
		Span: []Alias{
			// In nanoseconds.
			{Source: "gen_ai.user.time_to_first_token", Canonical: GenAITimeToFirstChunk, Factor: 1e-9},
			{Source: "dify.conversation.id", Canonical: SessionID},
			{Source: "dify.node.total_price", Canonical: UsageCost},
			{Source: "dify.node.currency", Canonical: UsageCurrency},
			{Source: "dify.user.id", Canonical: User, Kind: KindSecret},
		},
	}
}
