package mlattr

// vercel is the vocabulary of Vercel's AI SDK, versions 4 to 6. Its spans also
// have some of the conventions' names. Version 7 has those alone.
func vercel() Table {
	return Table{
		Name:        "vercel",
		Title:       "Vercel AI SDK",
		Page:        "https://ai-sdk.dev/docs/ai-sdk-core/telemetry",
		KeyPrefixes: []string{"ai."},
		Traits:      []Trait{ModelsElsewhere},
		// Each is above spans of its own calls: doGenerate, doStream, doEmbed.
		ToolArguments: []string{"ai.toolCall.args"},
		Wrappers:      []string{"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject", "ai.embed", "ai.embedMany"},
		Changes: append(settings("ai.settings.", "temperature", "topP", "topK", "maxOutputTokens", "maxTokens"), []ChangeKey{
			{Source: "ai.prompt.tools", Kind: ChangeTools},
		}...),
		Span: []Alias{
			{Source: "ai.usage.inputTokens", Canonical: GenAIInputTokens},
			{Source: "ai.usage.promptTokens", Canonical: GenAIInputTokens},
			// An embedding's.
			{Source: "ai.usage.tokens", Canonical: GenAIInputTokens},
			{Source: "ai.usage.outputTokens", Canonical: GenAIOutputTokens},
			{Source: "ai.usage.completionTokens", Canonical: GenAIOutputTokens},
			{Source: "ai.usage.totalTokens", Canonical: TotalTokens},
			{Source: "ai.usage.cachedInputTokens", Canonical: GenAICacheReadTokens},
			{Source: "ai.usage.inputTokenDetails.cacheReadTokens", Canonical: GenAICacheReadTokens},
			{Source: "ai.usage.inputTokenDetails.cacheWriteTokens", Canonical: GenAICacheCreationTokens},
			{Source: "ai.usage.reasoningTokens", Canonical: GenAIReasoningTokens},
			{Source: "ai.usage.outputTokenDetails.reasoningTokens", Canonical: GenAIReasoningTokens},
			{Source: "ai.response.msToFirstChunk", Canonical: GenAITimeToFirstChunk, Factor: 1e-3},
			{Source: "ai.stream.msToFirstChunk", Canonical: GenAITimeToFirstChunk, Factor: 1e-3},
			{Source: "ai.response.avgOutputTokensPerSecond", Canonical: TokensPerSecond},
			{Source: "ai.response.avgCompletionTokensPerSecond", Canonical: TokensPerSecond},
			{Source: "ai.model.id", Canonical: GenAIRequestModel},
			{Source: "ai.response.finishReason", Canonical: GenAIFinishReasons},
			{Source: "ai.toolCall.name", Canonical: GenAIToolName},
			{Source: "ai.response.model", Canonical: GenAIResponseModel},
			{Source: "ai.model.provider", Canonical: GenAIProviderName},
			{Source: "ai.operationId", Canonical: GenAIOperationName, Words: vercelOperations},
			{Source: "ai.telemetry.metadata.sessionId", Canonical: SessionID},
			{Source: "ai.telemetry.metadata.userId", Canonical: User, Kind: KindSecret},
			{Source: "ai.response.id", Canonical: RequestID},
		},
		FirstTokens: []FirstToken{{Event: "ai.stream.firstChunk"}},
	}
}

// vercelOperations leaves out spans of several requests, such as
// ai.generateText. Each request has its own span, whose operation ends in
// doGenerate or doStream.
var vercelOperations = map[string]string{
	"ai.generateText.doGenerate":   OperationChat,
	"ai.streamText.doStream":       OperationChat,
	"ai.generateObject.doGenerate": OperationChat,
	"ai.streamObject.doStream":     OperationChat,
	"ai.embed.doEmbed":             OperationEmbeddings,
	"ai.embedMany.doEmbed":         OperationEmbeddings,
	"ai.toolCall":                  OperationExecuteTool,
}
