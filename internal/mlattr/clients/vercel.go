package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// vercel is the vocabulary of Vercel's AI SDK, versions 4 to 6. Its spans also
// have some of the conventions' names. Version 7 has those alone.
func vercel() table.Table {
	return table.Table{
		Name:        "vercel",
		Title:       "Vercel AI SDK",
		Page:        "https://ai-sdk.dev/docs/ai-sdk-core/telemetry",
		KeyPrefixes: []string{"ai."},
		Traits:      []table.Trait{table.ModelsElsewhere},
		// Each is above spans of its own calls: doGenerate, doStream, doEmbed.
		ToolArguments: []string{"ai.toolCall.args"},
		Wrappers:      []string{"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject", "ai.embed", "ai.embedMany"},
		Changes: append(settings("ai.settings.", "temperature", "topP", "topK", "maxOutputTokens", "maxTokens"), []table.ChangeKey{
			{Source: "ai.prompt.tools", Kind: mlattr.ChangeTools},
		}...),
		Span: []table.Alias{
			{Source: "ai.usage.inputTokens", Canonical: mlattr.GenAIInputTokens},
			{Source: "ai.usage.promptTokens", Canonical: mlattr.GenAIInputTokens},
			// An embedding's.
			{Source: "ai.usage.tokens", Canonical: mlattr.GenAIInputTokens},
			{Source: "ai.usage.outputTokens", Canonical: mlattr.GenAIOutputTokens},
			{Source: "ai.usage.completionTokens", Canonical: mlattr.GenAIOutputTokens},
			{Source: "ai.usage.totalTokens", Canonical: mlattr.TotalTokens},
			{Source: "ai.usage.cachedInputTokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "ai.usage.inputTokenDetails.cacheReadTokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "ai.usage.inputTokenDetails.cacheWriteTokens", Canonical: mlattr.GenAICacheCreationTokens},
			{Source: "ai.usage.reasoningTokens", Canonical: mlattr.GenAIReasoningTokens},
			{Source: "ai.usage.outputTokenDetails.reasoningTokens", Canonical: mlattr.GenAIReasoningTokens},
			{Source: "ai.response.msToFirstChunk", Canonical: mlattr.GenAITimeToFirstChunk, Factor: 1e-3},
			{Source: "ai.stream.msToFirstChunk", Canonical: mlattr.GenAITimeToFirstChunk, Factor: 1e-3},
			{Source: "ai.response.avgOutputTokensPerSecond", Canonical: mlattr.TokensPerSecond},
			{Source: "ai.response.avgCompletionTokensPerSecond", Canonical: mlattr.TokensPerSecond},
			{Source: "ai.model.id", Canonical: mlattr.GenAIRequestModel},
			{Source: "ai.response.finishReason", Canonical: mlattr.GenAIFinishReasons},
			{Source: "ai.toolCall.name", Canonical: mlattr.GenAIToolName},
			{Source: "ai.response.model", Canonical: mlattr.GenAIResponseModel},
			{Source: "ai.model.provider", Canonical: mlattr.GenAIProviderName},
			{Source: "ai.operationId", Canonical: mlattr.GenAIOperationName, Words: vercelOperations},
			{Source: "ai.telemetry.metadata.sessionId", Canonical: mlattr.SessionID},
			{Source: "ai.telemetry.metadata.userId", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "ai.response.id", Canonical: mlattr.RequestID},
		},
		FirstTokens: []table.FirstToken{{Event: "ai.stream.firstChunk"}},
	}
}

// vercelOperations leaves out spans of several requests, such as
// ai.generateText. Each request has its own span, whose operation ends in
// doGenerate or doStream.
var vercelOperations = map[string]string{
	"ai.generateText.doGenerate":   mlattr.OperationChat,
	"ai.streamText.doStream":       mlattr.OperationChat,
	"ai.generateObject.doGenerate": mlattr.OperationChat,
	"ai.streamObject.doStream":     mlattr.OperationChat,
	"ai.embed.doEmbed":             mlattr.OperationEmbeddings,
	"ai.embedMany.doEmbed":         mlattr.OperationEmbeddings,
	"ai.toolCall":                  mlattr.OperationExecuteTool,
}
