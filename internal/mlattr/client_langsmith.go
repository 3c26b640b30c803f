package mlattr

// langSmith is the vocabulary of LangSmith's SDK where it sends OpenTelemetry.
// It states an operation of a model for steps that are no request, and its
// langsmith.trace.session_name is a project.
func langSmith() Table {
	steps := map[string]string{}
	for _, kind := range []string{"prompt", "retriever", "parser", "tool", "chain"} {
		steps[kind] = wordFalse
	}
	return Table{
		Name:        "langsmith",
		Title:       "LangSmith",
		Page:        "https://docs.langchain.com/langsmith/trace-with-opentelemetry",
		Scopes:      []string{"langsmith"},
		KeyPrefixes: []string{"langsmith."},
		SpanMaps: []MapAlias{{Source: "gen_ai.usage.input_token_details", Fields: []Alias{
			{Source: "cache_read", Canonical: GenAICacheReadTokens},
			{Source: "cache_creation", Canonical: GenAICacheCreationTokens},
		}}},
		Span: []Alias{
			{Source: "langsmith.span.kind", Canonical: RequestCounted, Words: steps},
			{Source: "langsmith.request.streaming", Canonical: GenAIStream},
			{Source: "langsmith.metadata.thread_id", Canonical: SessionID},
			{Source: "langsmith.metadata.session_id", Canonical: SessionID},
			{Source: "langsmith.metadata.conversation_id", Canonical: SessionID},
		},
	}
}
