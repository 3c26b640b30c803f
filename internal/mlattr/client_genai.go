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
			{Source: "litellm.cost.total", Canonical: UsageCost},
			{Source: "litellm.cost.input", Canonical: UsageInputCost},
			{Source: "litellm.cost.output", Canonical: UsageOutputCost},
			// The conventions' name of the metric, which pydantic-ai uses on spans.
			{Source: "gen_ai.client.operation.time_to_first_chunk", Canonical: GenAITimeToFirstChunk},
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
			{Source: "gen_ai.client.token.usage", Measure: MeasureTokens, Instrument: Histogram},
			{Source: "gen_ai.client.operation.duration", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "gen_ai.client.operation.time_to_first_chunk", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "gen_ai.server.request.duration", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "gen_ai.server.time_to_first_token", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "gen_ai.server.time_per_output_token", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
		},
	}
}
