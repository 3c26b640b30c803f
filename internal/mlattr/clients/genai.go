package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// genAI is the vocabulary of the GenAI semantic conventions: the names of
// earlier versions, and names that are canonical under another name. Every key
// has a name space of its own, so the rules apply without recognising a client.
func genAI() table.Table {
	return table.Table{
		Name:           "genai",
		Title:          "GenAI semantic conventions",
		Page:           "https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/registry/attributes/gen-ai.md",
		KeyPrefixes:    []string{"gen_ai.", "session.", "litellm.cost."},
		MetricPrefixes: []string{"gen_ai."},
		ModelCall: table.ModelCall{
			OperationKeys: []string{mlattr.GenAIOperationName},
			Requests:      []string{mlattr.OperationChat, mlattr.OperationTextCompletion, mlattr.OperationGenerateContent, mlattr.OperationEmbeddings},
		},
		ToolArguments: []string{"gen_ai.tool.call.arguments"},
		Wrappers:      []string{"invoke_agent", "invoke_workflow", "agent_step"},
		Changes: append(settings("gen_ai.request.", "temperature", "top_p", "top_k", "max_tokens", "frequency_penalty",
			"presence_penalty", "choice.count", "stop_sequences", "reasoning.level"), []table.ChangeKey{
			{Source: "gen_ai.system_instructions", Kind: mlattr.ChangePrompt},
			{Source: "gen_ai.prompt.name", Kind: mlattr.ChangePrompt, Name: "name"},
			{Source: "gen_ai.prompt.version", Kind: mlattr.ChangePrompt, Name: "version"},
			{Source: "gen_ai.tool.definitions", Kind: mlattr.ChangeTools},
		}...),
		Span: []table.Alias{
			{Source: "gen_ai.usage.prompt_tokens", Canonical: mlattr.GenAIInputTokens},
			{Source: "gen_ai.usage.completion_tokens", Canonical: mlattr.GenAIOutputTokens},
			// The conventions' name after 1.41.
			{Source: "gen_ai.usage.cache_write.input_tokens", Canonical: mlattr.GenAICacheCreationTokens},
			// No convention has the cost; these are the names of OpenLIT, LiteLLM and
			// OpenRouter.
			{Source: "gen_ai.usage.cost", Canonical: mlattr.UsageCost},
			{Source: "gen_ai.cost.total_cost", Canonical: mlattr.UsageCost},
			{Source: "gen_ai.cost.input_cost", Canonical: mlattr.UsageInputCost},
			{Source: "gen_ai.cost.output_cost", Canonical: mlattr.UsageOutputCost},
			{Source: "gen_ai.usage.total_cost", Canonical: mlattr.UsageCost},
			// vLLM's names, which SGLang and TensorRT-LLM use, too.
			{Source: "gen_ai.latency.e2e", Canonical: mlattr.Latency},
			{Source: "gen_ai.latency.time_to_first_token", Canonical: mlattr.GenAITimeToFirstChunk},
			{Source: "gen_ai.latency.time_in_queue", Canonical: mlattr.QueueTime},
			{Source: "gen_ai.latency.time_in_model_prefill", Canonical: mlattr.PrefillTime},
			{Source: "gen_ai.latency.time_in_model_decode", Canonical: mlattr.DecodeTime},
			{Source: "gen_ai.usage.num_sequences", Canonical: mlattr.GenAIChoices},
			{Source: "gen_ai.request.n", Canonical: mlattr.GenAIChoices},
			// The conventions' names of the metric, which clients use on spans.
			{Source: "gen_ai.client.operation.time_to_first_chunk", Canonical: mlattr.GenAITimeToFirstChunk},
			{Source: "gen_ai.client.inference.time_to_first_chunk", Canonical: mlattr.GenAITimeToFirstChunk},
			{Source: "gen_ai.system", Canonical: mlattr.GenAIProviderName},
			{Source: "gen_ai.conversation.id", Canonical: mlattr.SessionID},
			{Source: "session.id", Canonical: mlattr.SessionID},
			{Source: "gen_ai.request.id", Canonical: mlattr.RequestID},
			{Source: "gen_ai.response.id", Canonical: mlattr.RequestID},
			// The conventions have user.id for everyone; these are others'.
			{Source: "gen_ai.user.id", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "gen_ai.request.user", Canonical: mlattr.User, Kind: table.KindSecret},
		},
		Point: []table.Alias{
			{Source: "gen_ai.system", Canonical: mlattr.GenAIProviderName},
		},
		Metrics: []table.Metric{
			// After 1.41 the tokens are counters, and distributions of the same tokens.
			{Source: "gen_ai.client.inference.usage.input_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "gen_ai.client.inference.usage.output_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
			{Source: "gen_ai.client.inference.usage.cache_read.input_tokens", Measure: table.MeasureCachedTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "gen_ai.client.inference.operation.input_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput,
				Repeats: []string{"gen_ai.client.inference.usage.input_tokens"}},
			{Source: "gen_ai.client.inference.operation.output_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput,
				Repeats: []string{"gen_ai.client.inference.usage.output_tokens"}},
			{Source: "gen_ai.client.embeddings.operation.input_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "gen_ai.client.inference.duration", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "gen_ai.client.embeddings.duration", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "gen_ai.client.inference.time_to_first_chunk", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "gen_ai.client.token.usage", Measure: table.MeasureTokens, Instrument: table.Histogram,
				Repeats: []string{"gen_ai.client.inference.usage.input_tokens", "gen_ai.client.inference.usage.output_tokens",
					"gen_ai.client.inference.operation.input_tokens", "gen_ai.client.inference.operation.output_tokens"}},
			{Source: "gen_ai.client.operation.duration", Measure: table.MeasureRequestDuration, Instrument: table.Histogram,
				Repeats: []string{"gen_ai.client.inference.duration", "gen_ai.client.embeddings.duration"}},
			{Source: "gen_ai.client.operation.time_to_first_chunk", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram,
				Repeats: []string{"gen_ai.client.inference.time_to_first_chunk"}},
			{Source: "gen_ai.server.request.duration", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "gen_ai.server.time_to_first_token", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "gen_ai.server.time_per_output_token", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
		},
	}
}
