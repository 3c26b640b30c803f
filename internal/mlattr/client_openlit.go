package mlattr

// openLIT is the vocabulary of OpenLIT, as far as it differs from the
// conventions.
func openLIT() Table {
	return Table{
		Name:        "openlit",
		Title:       "OpenLIT",
		Page:        "https://docs.openlit.io/latest/sdk/overview",
		Scopes:      []string{"openlit."},
		KeyPrefixes: []string{"openlit."},
		Span: []Alias{
			{Source: "gen_ai.server.time_to_first_token", Canonical: GenAITimeToFirstChunk},
		},
	}
}
