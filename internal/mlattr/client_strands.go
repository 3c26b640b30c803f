package mlattr

// strands is the vocabulary of Strands Agents, as far as it differs from the
// conventions. The span of an agent has the usage of the agent's whole life.
func strands() Table {
	return Table{
		Name:        "strands",
		Title:       "Strands Agents",
		Page:        "https://strandsagents.com/latest/documentation/docs/user-guide/observability-evaluation/traces/",
		Scopes:      []string{"strands."},
		KeyPrefixes: []string{"event_loop.cycle_id"},
		Span: []Alias{
			// In milliseconds.
			{Source: "gen_ai.server.time_to_first_token", Canonical: GenAITimeToFirstChunk, Factor: 1e-3},
			{Source: "gen_ai.usage.cache_write_input_tokens", Canonical: GenAICacheCreationTokens},
		},
	}
}
