package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// langfuse is the vocabulary of Langfuse's SDKs. The tokens of a generation are
// one attribute, the JSON of a map whose keys are the provider's or Langfuse's.
func langfuse() table.Table {
	return table.Table{
		Name:          "langfuse",
		Title:         "Langfuse",
		Page:          "https://langfuse.com/integrations/native/opentelemetry",
		Scopes:        []string{"langfuse-sdk"},
		KeyPrefixes:   []string{"langfuse."},
		ToolArguments: []string{"langfuse.observation.input"},
		SpanMaps: []table.MapAlias{{Source: "langfuse.observation.usage_details", Fields: []table.Alias{
			{Source: "input", Canonical: mlattr.GenAIInputTokens},
			{Source: "input_tokens", Canonical: mlattr.GenAIInputTokens},
			{Source: "prompt_tokens", Canonical: mlattr.GenAIInputTokens},
			{Source: "output", Canonical: mlattr.GenAIOutputTokens},
			{Source: "output_tokens", Canonical: mlattr.GenAIOutputTokens},
			{Source: "completion_tokens", Canonical: mlattr.GenAIOutputTokens},
			{Source: "total", Canonical: mlattr.TotalTokens},
			{Source: "total_tokens", Canonical: mlattr.TotalTokens},
			{Source: "cache_read_input_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "input_cached_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "prompt_tokens_details.cached_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "cache_creation_input_tokens", Canonical: mlattr.GenAICacheCreationTokens},
			{Source: "output_reasoning_tokens", Canonical: mlattr.GenAIReasoningTokens},
			{Source: "completion_tokens_details.reasoning_tokens", Canonical: mlattr.GenAIReasoningTokens},
		}}, {Source: "langfuse.observation.cost_details", Fields: []table.Alias{
			{Source: "total", Canonical: mlattr.UsageCost},
			{Source: "input", Canonical: mlattr.UsageInputCost},
			{Source: "output", Canonical: mlattr.UsageOutputCost},
		}}},
		Changes: []table.ChangeKey{
			{Source: "langfuse.observation.prompt.name", Kind: mlattr.ChangePrompt, Name: "name"},
			{Source: "langfuse.observation.prompt.version", Kind: mlattr.ChangePrompt, Name: "version"},
			{Source: "langfuse.observation.model.parameters", Kind: mlattr.ChangeSettings, Name: "model parameters"},
		},
		Span: []table.Alias{
			{Source: "langfuse.observation.completion_start_time", Canonical: mlattr.FirstTokenAt},
			{Source: "langfuse.observation.model.name", Canonical: mlattr.GenAIRequestModel},
			{Source: "langfuse.observation.type", Canonical: mlattr.GenAIOperationName, Words: langfuseTypes},
			{Source: "langfuse.session.id", Canonical: mlattr.SessionID},
			{Source: "session.id", Canonical: mlattr.SessionID},
			{Source: "langfuse.user.id", Canonical: mlattr.User, Kind: table.KindSecret},
		},
	}
}

var langfuseTypes = map[string]string{
	"generation": mlattr.OperationChat,
	"embedding":  mlattr.OperationEmbeddings,
	"retriever":  mlattr.OperationRetrieval,
	"tool":       mlattr.OperationExecuteTool,
	"agent":      mlattr.OperationInvokeAgent,
}
