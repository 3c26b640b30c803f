package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// openLLMetry is the vocabulary of Traceloop's OpenLLMetry, as far as it
// differs from the conventions. Versions differ: the one in examples/llm has
// the conventions' token counts, earlier ones have "llm.usage.".
func openLLMetry() table.Table {
	return table.Table{
		Name:  "openllmetry",
		Title: "OpenLLMetry",
		Page:  "https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions",
		// Of the conventions' name space, the keys that only OpenLLMetry has.
		KeyPrefixes: []string{"traceloop.", "llm.", "gen_ai.is_streaming", "gen_ai.usage.", "gen_ai.user"},
		ModelCall: table.ModelCall{
			OperationKeys: []string{"llm.request.type"},
			Requests:      []string{"completion", "embedding", "rerank"},
			AddressKeys:   []string{"gen_ai.openai.api_base"},
		},
		ToolArguments: []string{"traceloop.entity.input"},
		Span: []table.Alias{
			{Source: "llm.usage.prompt_tokens", Canonical: mlattr.GenAIInputTokens},
			{Source: "llm.usage.completion_tokens", Canonical: mlattr.GenAIOutputTokens},
			{Source: "gen_ai.usage.total_tokens", Canonical: mlattr.TotalTokens},
			{Source: "llm.usage.total_tokens", Canonical: mlattr.TotalTokens},
			{Source: "gen_ai.usage.cache_read_input_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "llm.usage.cache_read_input_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "gen_ai.usage.cached_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "llm.usage.cached_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "gen_ai.usage.prompt_tokens_details.cached_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "llm.usage.prompt_tokens_details.cached_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "gen_ai.usage.cache_creation_input_tokens", Canonical: mlattr.GenAICacheCreationTokens},
			{Source: "llm.usage.cache_creation_input_tokens", Canonical: mlattr.GenAICacheCreationTokens},
			{Source: "gen_ai.usage.reasoning_tokens", Canonical: mlattr.GenAIReasoningTokens},
			{Source: "llm.usage.reasoning_tokens", Canonical: mlattr.GenAIReasoningTokens},
			{Source: "llm.request.model", Canonical: mlattr.GenAIRequestModel},
			{Source: "llm.response.model", Canonical: mlattr.GenAIResponseModel},
			{Source: "gen_ai.is_streaming", Canonical: mlattr.GenAIStream},
			{Source: "llm.is_streaming", Canonical: mlattr.GenAIStream},
			{Source: "gen_ai.response.finish_reason", Canonical: mlattr.GenAIFinishReasons},
			{Source: "llm.response.finish_reason", Canonical: mlattr.GenAIFinishReasons},
			{Source: "llm.response.stop_reason", Canonical: mlattr.GenAIFinishReasons},
			{Source: "traceloop.span.kind", Canonical: mlattr.GenAIOperationName, Words: traceloopKinds},
			{Source: "llm.request.type", Canonical: mlattr.GenAIOperationName, Words: requestTypes},
			{Source: "traceloop.association.properties.session_id", Canonical: mlattr.SessionID},
			{Source: "traceloop.association.properties.user_id", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "traceloop.association.properties.userId", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "gen_ai.user", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "llm.user", Canonical: mlattr.User, Kind: table.KindSecret},
		},
		FirstTokens: []table.FirstToken{
			{Event: "gen_ai.content.completion.chunk", Repeated: true},
			{Event: "llm.content.completion.chunk", Repeated: true},
		},
	}
}

// The client's words for the operations of the conventions. Others, such as a
// chain or a task, are no operation there.
var (
	traceloopKinds = map[string]string{
		"workflow": mlattr.OperationInvokeWorkflow,
		"agent":    mlattr.OperationInvokeAgent,
		"tool":     mlattr.OperationExecuteTool,
	}
	requestTypes = map[string]string{
		"chat":       mlattr.OperationChat,
		"completion": mlattr.OperationTextCompletion,
		"embedding":  mlattr.OperationEmbeddings,
	}
)
