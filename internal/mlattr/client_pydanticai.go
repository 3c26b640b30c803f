package mlattr

// pydanticAI is the vocabulary of pydantic-ai, as far as it differs from the
// conventions. The span of an agent sums up its requests under names of its own,
// gen_ai.aggregated_usage.*; versions before 2 used those of a request.
func pydanticAI() Table {
	return Table{
		Name:        "pydantic_ai",
		Title:       "Pydantic AI",
		Page:        "https://ai.pydantic.dev/logfire/",
		Scopes:      []string{"pydantic-ai"},
		KeyPrefixes: []string{"pydantic_ai.", "gen_ai.aggregated_usage."},
		Wrappers:    []string{"agent run"},
		Span: []Alias{
			{Source: "operation.cost", Canonical: UsageCost},
			// Before version 2.
			{Source: "agent_name", Canonical: GenAIAgentName},
		},
	}
}
