package mlattr

// openLLMetry is the vocabulary of Traceloop's OpenLLMetry, as far as it
// differs from the conventions. Versions differ: the one in examples/llm has
// the conventions' token counts, earlier ones have "llm.usage.".
func openLLMetry() Table {
	return Table{
		Name:  "openllmetry",
		Title: "OpenLLMetry",
		Page:  "https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions",
		// Of the conventions' name space, the keys that only OpenLLMetry has.
		KeyPrefixes: []string{"traceloop.", "llm.", "gen_ai.is_streaming", "gen_ai.usage.", "gen_ai.user"},
		ModelCall: ModelCall{
			OperationKeys: []string{"llm.request.type"},
			Requests:      []string{"completion", "embedding", "rerank"},
			AddressKeys:   []string{"gen_ai.openai.api_base"},
		},
		ToolArguments: []string{"traceloop.entity.input"},
		Span: []Alias{
			{Source: "llm.usage.prompt_tokens", Canonical: GenAIInputTokens},
			{Source: "llm.usage.completion_tokens", Canonical: GenAIOutputTokens},
			{Source: "gen_ai.usage.total_tokens", Canonical: TotalTokens},
			{Source: "llm.usage.total_tokens", Canonical: TotalTokens},
			{Source: "gen_ai.usage.cache_read_input_tokens", Canonical: GenAICacheReadTokens},
			{Source: "llm.usage.cache_read_input_tokens", Canonical: GenAICacheReadTokens},
			{Source: "gen_ai.usage.cached_tokens", Canonical: GenAICacheReadTokens},
			{Source: "llm.usage.cached_tokens", Canonical: GenAICacheReadTokens},
			{Source: "gen_ai.usage.prompt_tokens_details.cached_tokens", Canonical: GenAICacheReadTokens},
			{Source: "llm.usage.prompt_tokens_details.cached_tokens", Canonical: GenAICacheReadTokens},
			{Source: "gen_ai.usage.cache_creation_input_tokens", Canonical: GenAICacheCreationTokens},
			{Source: "llm.usage.cache_creation_input_tokens", Canonical: GenAICacheCreationTokens},
			{Source: "gen_ai.usage.reasoning_tokens", Canonical: GenAIReasoningTokens},
			{Source: "llm.usage.reasoning_tokens", Canonical: GenAIReasoningTokens},
			{Source: "llm.request.model", Canonical: GenAIRequestModel},
			{Source: "llm.response.model", Canonical: GenAIResponseModel},
			{Source: "gen_ai.is_streaming", Canonical: GenAIStream},
			{Source: "llm.is_streaming", Canonical: GenAIStream},
			{Source: "gen_ai.response.finish_reason", Canonical: GenAIFinishReasons},
			{Source: "llm.response.finish_reason", Canonical: GenAIFinishReasons},
			{Source: "llm.response.stop_reason", Canonical: GenAIFinishReasons},
			{Source: "traceloop.span.kind", Canonical: GenAIOperationName, Words: traceloopKinds},
			{Source: "llm.request.type", Canonical: GenAIOperationName, Words: requestTypes},
			{Source: "traceloop.association.properties.session_id", Canonical: SessionID},
			{Source: "traceloop.association.properties.user_id", Canonical: User, Kind: KindSecret},
			{Source: "traceloop.association.properties.userId", Canonical: User, Kind: KindSecret},
			{Source: "gen_ai.user", Canonical: User, Kind: KindSecret},
			{Source: "llm.user", Canonical: User, Kind: KindSecret},
		},
		FirstTokens: []FirstToken{
			{Event: "gen_ai.content.completion.chunk", Repeated: true},
			{Event: "llm.content.completion.chunk", Repeated: true},
		},
	}
}

// The client's words for the operations of the conventions. Others, such as a
// chain or a task, are no operation there.
var (
	traceloopKinds = map[string]string{
		"workflow": OperationInvokeWorkflow,
		"agent":    OperationInvokeAgent,
		"tool":     OperationExecuteTool,
	}
	requestTypes = map[string]string{
		"chat":       OperationChat,
		"completion": OperationTextCompletion,
		"embedding":  OperationEmbeddings,
	}
)
