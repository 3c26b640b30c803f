package mlattr

// openInference is the vocabulary of Arize's OpenInference.
func openInference() Table {
	return Table{
		Name:   "openinference",
		Title:  "OpenInference",
		Page:   "https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md",
		Scopes: []string{"openinference."},
		KeyPrefixes: []string{"openinference.", "llm.token_count.", "llm.cost.", "llm.model_name", "llm.request.model_name",
			"llm.response.model_name", "llm.provider", "llm.system", "embedding.model_name"},
		ModelCall: ModelCall{
			OperationKeys: []string{"openinference.span.kind"},
			Requests:      []string{"llm", "embedding", "reranker"},
			Listed: &ListedRequest{
				KindKey: "openinference.span.kind", Kind: "LLM",
				Messages: "llm.input_messages", Tools: "llm.tools", Parameters: "llm.invocation_parameters", Model: "llm.model_name",
				Body: "input.value", BodyType: "input.mime_type",
			},
		},
		ToolArguments: []string{"input.value", "tool.parameters"},
		Changes: []ChangeKey{
			{Source: "llm.prompt_template.template", Kind: ChangePrompt},
			{Source: "llm.prompt_template.version", Kind: ChangePrompt, Name: "version"},
			{Source: "llm.invocation_parameters", Kind: ChangeSettings, Name: "invocation parameters"},
		},
		Span: []Alias{
			{Source: "llm.token_count.prompt", Canonical: GenAIInputTokens},
			{Source: "llm.token_count.completion", Canonical: GenAIOutputTokens},
			{Source: "llm.token_count.total", Canonical: TotalTokens},
			{Source: "llm.token_count.prompt_details.cache_read", Canonical: GenAICacheReadTokens},
			{Source: "llm.token_count.prompt_details.cache_write", Canonical: GenAICacheCreationTokens},
			{Source: "llm.token_count.completion_details.reasoning", Canonical: GenAIReasoningTokens},
			{Source: "llm.response.model_name", Canonical: GenAIResponseModel},
			{Source: "llm.request.model_name", Canonical: GenAIRequestModel},
			// It is the model that answered. Of older versions the requested one is
			// only in the JSON of the parameters.
			{Source: "llm.model_name", Canonical: GenAIResponseModel},
			{Source: "llm.invocation_parameters", Canonical: GenAIRequestModel, Reads: jsonModel},
			{Source: "llm.finish_reason", Canonical: GenAIFinishReasons},
			{Source: "llm.cost.total", Canonical: UsageCost},
			{Source: "llm.cost.prompt", Canonical: UsageInputCost},
			{Source: "llm.cost.completion", Canonical: UsageOutputCost},
			{Source: "tool.name", Canonical: GenAIToolName},
			{Source: "agent.name", Canonical: GenAIAgentName},
			{Source: "embedding.model_name", Canonical: GenAIRequestModel},
			{Source: "llm.provider", Canonical: GenAIProviderName},
			{Source: "llm.system", Canonical: GenAIProviderName},
			{Source: "openinference.span.kind", Canonical: GenAIOperationName, Words: openInferenceKinds},
			{Source: "session.id", Canonical: SessionID},
		},
		FirstTokens: []FirstToken{{Event: "First Token Stream Event"}},
	}
}

var openInferenceKinds = map[string]string{
	"LLM":       OperationChat,
	"EMBEDDING": OperationEmbeddings,
	"RETRIEVER": OperationRetrieval,
	"TOOL":      OperationExecuteTool,
	"AGENT":     OperationInvokeAgent,
}
