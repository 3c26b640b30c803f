package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// openInference is the vocabulary of Arize's OpenInference.
func openInference() table.Table {
	return table.Table{
		Name:   "openinference",
		Title:  "OpenInference",
		Page:   "https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md",
		Scopes: []string{"openinference."},
		KeyPrefixes: []string{"openinference.", "llm.token_count.", "llm.cost.", "llm.model_name", "llm.request.model_name",
			"llm.response.model_name", "llm.provider", "llm.system", "embedding.model_name"},
		ModelCall: table.ModelCall{
			OperationKeys: []string{"openinference.span.kind"},
			Requests:      []string{"llm", "embedding", "reranker"},
			Listed: &table.ListedRequest{
				KindKey: "openinference.span.kind", Kind: "LLM",
				Messages: "llm.input_messages", Tools: "llm.tools", Parameters: "llm.invocation_parameters", Model: "llm.model_name",
				Body: "input.value", BodyType: "input.mime_type",
			},
		},
		ToolArguments: []string{"input.value", "tool.parameters"},
		Changes: []table.ChangeKey{
			{Source: "llm.prompt_template.template", Kind: mlattr.ChangePrompt},
			{Source: "llm.prompt_template.version", Kind: mlattr.ChangePrompt, Name: "version"},
			{Source: "llm.invocation_parameters", Kind: mlattr.ChangeSettings, Name: "invocation parameters"},
		},
		Span: []table.Alias{
			// It is the model that answered. Of older versions the requested one is
			// only in the JSON of the parameters.
			{Source: "llm.model_name", Canonical: mlattr.GenAIResponseModel},
			{Source: "llm.invocation_parameters", Canonical: mlattr.GenAIRequestModel, Reads: mlattr.JSONModel},
			{Source: "llm.cost.total", Canonical: mlattr.UsageCost},
			{Source: "llm.cost.prompt", Canonical: mlattr.UsageInputCost},
			{Source: "llm.cost.completion", Canonical: mlattr.UsageOutputCost},
			{Source: "agent.name", Canonical: mlattr.GenAIAgentName},
			{Source: "embedding.model_name", Canonical: mlattr.GenAIRequestModel},
			{Source: "llm.provider", Canonical: mlattr.GenAIProviderName},
			{Source: "llm.system", Canonical: mlattr.GenAIProviderName},
			{Source: "openinference.span.kind", Canonical: mlattr.GenAIOperationName, Words: openInferenceKinds},
			{Source: "session.id", Canonical: mlattr.SessionID},
		},
		FirstTokens: []table.FirstToken{{Event: "First Token Stream Event"}},
	}
}

var openInferenceKinds = map[string]string{
	"LLM":       mlattr.OperationChat,
	"EMBEDDING": mlattr.OperationEmbeddings,
	"RETRIEVER": mlattr.OperationRetrieval,
	"TOOL":      mlattr.OperationExecuteTool,
	"AGENT":     mlattr.OperationInvokeAgent,
}
