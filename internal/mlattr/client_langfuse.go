package mlattr

// langfuse is the vocabulary of Langfuse's SDKs. The tokens of a generation are
// one attribute, the JSON of a map whose keys are the provider's or Langfuse's.
func langfuse() Table {
	return Table{
		Name:          "langfuse",
		Title:         "Langfuse",
		Page:          "https://langfuse.com/integrations/native/opentelemetry",
		Scopes:        []string{"langfuse-sdk"},
		KeyPrefixes:   []string{"langfuse."},
		ToolArguments: []string{"langfuse.observation.input"},
		SpanMaps: []MapAlias{{Source: "langfuse.observation.usage_details", Fields: []Alias{
			{Source: "input", Canonical: GenAIInputTokens},
			{Source: "input_tokens", Canonical: GenAIInputTokens},
			{Source: "prompt_tokens", Canonical: GenAIInputTokens},
			{Source: "output", Canonical: GenAIOutputTokens},
			{Source: "output_tokens", Canonical: GenAIOutputTokens},
			{Source: "completion_tokens", Canonical: GenAIOutputTokens},
			{Source: "total", Canonical: TotalTokens},
			{Source: "total_tokens", Canonical: TotalTokens},
			{Source: "cache_read_input_tokens", Canonical: GenAICacheReadTokens},
			{Source: "input_cached_tokens", Canonical: GenAICacheReadTokens},
			{Source: "prompt_tokens_details.cached_tokens", Canonical: GenAICacheReadTokens},
			{Source: "cache_creation_input_tokens", Canonical: GenAICacheCreationTokens},
			{Source: "output_reasoning_tokens", Canonical: GenAIReasoningTokens},
			{Source: "completion_tokens_details.reasoning_tokens", Canonical: GenAIReasoningTokens},
		}}, {Source: "langfuse.observation.cost_details", Fields: []Alias{
			{Source: "total", Canonical: UsageCost},
			{Source: "input", Canonical: UsageInputCost},
			{Source: "output", Canonical: UsageOutputCost},
		}}},
		Changes: []ChangeKey{
			{Source: "langfuse.observation.prompt.name", Kind: ChangePrompt, Name: "name"},
			{Source: "langfuse.observation.prompt.version", Kind: ChangePrompt, Name: "version"},
			{Source: "langfuse.observation.model.parameters", Kind: ChangeSettings, Name: "model parameters"},
		},
		Span: []Alias{
			{Source: "langfuse.observation.completion_start_time", Canonical: FirstTokenAt},
			{Source: "langfuse.observation.model.name", Canonical: GenAIRequestModel},
			{Source: "langfuse.observation.type", Canonical: GenAIOperationName, Words: langfuseTypes},
			{Source: "langfuse.session.id", Canonical: SessionID},
			{Source: "session.id", Canonical: SessionID},
			{Source: "langfuse.user.id", Canonical: User, Kind: KindSecret},
		},
	}
}

var langfuseTypes = map[string]string{
	"generation": OperationChat,
	"embedding":  OperationEmbeddings,
	"retriever":  OperationRetrieval,
	"tool":       OperationExecuteTool,
	"agent":      OperationInvokeAgent,
}
