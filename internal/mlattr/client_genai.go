package mlattr

// genAI is the vocabulary of the GenAI semantic conventions: the names of
// earlier versions, and names that are canonical under another name. Every key
// has a name space of its own, so the rules apply without recognising a client.
func genAI() Table {
	return Table{
		Name:           "genai",
		Title:          "GenAI semantic conventions",
		Page:           "https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/registry/attributes/gen-ai.md",
		KeyPrefixes:    []string{"gen_ai.", "session.", "litellm.cost."},
		MetricPrefixes: []string{"gen_ai."},
		ModelCall: ModelCall{
			OperationKeys: []string{GenAIOperationName},
			Requests:      []string{OperationChat, OperationTextCompletion, OperationGenerateContent, OperationEmbeddings},
		},
		ToolArguments: []string{"gen_ai.tool.call.arguments"},
		Wrappers:      []string{"invoke_agent", "invoke_workflow", "agent_step"},
		Changes: append(settings("gen_ai.request.", "temperature", "top_p", "top_k", "max_tokens", "frequency_penalty",
			"presence_penalty", "choice.count", "stop_sequences", "reasoning.level"), []ChangeKey{
			{Source: "gen_ai.system_instructions", Kind: ChangePrompt},
			{Source: "gen_ai.prompt.name", Kind: ChangePrompt, Name: "name"},
			{Source: "gen_ai.prompt.version", Kind: ChangePrompt, Name: "version"},
			{Source: "gen_ai.tool.definitions", Kind: ChangeTools},
		}...),
		Span: []Alias{
			{Source: "gen_ai.usage.prompt_tokens", Canonical: GenAIInputTokens},
			{Source: "gen_ai.usage.completion_tokens", Canonical: GenAIOutputTokens},
			// The conventions' name after 1.41.
			{Source: "gen_ai.usage.cache_write.input_tokens", Canonical: GenAICacheCreationTokens},
			// No convention has the cost; these are the names of OpenLIT, LiteLLM and
			// OpenRouter.
			{Source: "gen_ai.usage.cost", Canonical: UsageCost},
			{Source: "gen_ai.cost.total_cost", Canonical: UsageCost},
			{Source: "gen_ai.cost.input_cost", Canonical: UsageInputCost},
			{Source: "gen_ai.cost.output_cost", Canonical: UsageOutputCost},
			{Source: "gen_ai.usage.total_cost", Canonical: UsageCost},
			// vLLM's names, which SGLang and TensorRT-LLM use, too.
			{Source: "gen_ai.latency.e2e", Canonical: Latency},
			{Source: "gen_ai.latency.time_to_first_token", Canonical: GenAITimeToFirstChunk},
			{Source: "gen_ai.latency.time_in_queue", Canonical: QueueTime},
			{Source: "gen_ai.latency.time_in_model_prefill", Canonical: PrefillTime},
			{Source: "gen_ai.latency.time_in_model_decode", Canonical: DecodeTime},
			{Source: "gen_ai.usage.num_sequences", Canonical: GenAIChoices},
			{Source: "gen_ai.request.n", Canonical: GenAIChoices},
			// The conventions' names of the metric, which clients use on spans.
			{Source: "gen_ai.client.operation.time_to_first_chunk", Canonical: GenAITimeToFirstChunk},
			{Source: "gen_ai.client.inference.time_to_first_chunk", Canonical: GenAITimeToFirstChunk},
			{Source: "gen_ai.system", Canonical: GenAIProviderName},
			{Source: "gen_ai.conversation.id", Canonical: SessionID},
			{Source: "session.id", Canonical: SessionID},
			{Source: "gen_ai.request.id", Canonical: RequestID},
			{Source: "gen_ai.response.id", Canonical: RequestID},
			// The conventions have user.id for everyone; these are others'.
			{Source: "gen_ai.user.id", Canonical: User, Kind: KindSecret},
			{Source: "gen_ai.request.user", Canonical: User, Kind: KindSecret},
		},
		Point: []Alias{
			{Source: "gen_ai.system", Canonical: GenAIProviderName},
		},
		Metrics: []Metric{
			// After 1.41 the tokens are counters, and distributions of the same tokens.
			{Source: "gen_ai.client.inference.usage.input_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "gen_ai.client.inference.usage.output_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "gen_ai.client.inference.usage.cache_read.input_tokens", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "gen_ai.client.inference.operation.input_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput,
				Repeats: []string{"gen_ai.client.inference.usage.input_tokens"}},
			{Source: "gen_ai.client.inference.operation.output_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput,
				Repeats: []string{"gen_ai.client.inference.usage.output_tokens"}},
			{Source: "gen_ai.client.embeddings.operation.input_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "gen_ai.client.inference.duration", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "gen_ai.client.embeddings.duration", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "gen_ai.client.inference.time_to_first_chunk", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "gen_ai.client.token.usage", Measure: MeasureTokens, Instrument: Histogram,
				Repeats: []string{"gen_ai.client.inference.usage.input_tokens", "gen_ai.client.inference.usage.output_tokens",
					"gen_ai.client.inference.operation.input_tokens", "gen_ai.client.inference.operation.output_tokens"}},
			{Source: "gen_ai.client.operation.duration", Measure: MeasureRequestDuration, Instrument: Histogram,
				Repeats: []string{"gen_ai.client.inference.duration", "gen_ai.client.embeddings.duration"}},
			{Source: "gen_ai.client.operation.time_to_first_chunk", Measure: MeasureTimeToFirstToken, Instrument: Histogram,
				Repeats: []string{"gen_ai.client.inference.time_to_first_chunk"}},
			{Source: "gen_ai.server.request.duration", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "gen_ai.server.time_to_first_token", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "gen_ai.server.time_per_output_token", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
		},
	}
}
