package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// mlflow is the vocabulary of MLflow Tracing. It writes every value as JSON,
// so that a text has quotes.
func mlflow() table.Table {
	return table.Table{
		Name:          "mlflow",
		Title:         "MLflow Tracing",
		Page:          "https://mlflow.org/docs/latest/genai/tracing/",
		Scopes:        []string{"mlflow."},
		KeyPrefixes:   []string{"mlflow."},
		Runners:       []string{"mlflow"},
		Packages:      []string{"mlflow"},
		ToolArguments: []string{"mlflow.spanInputs"},
		FirstTokens:   []table.FirstToken{{Event: "mlflow.chunk.item.0"}},
		SpanMaps: []table.MapAlias{{Source: "mlflow.chat.tokenUsage", Fields: []table.Alias{
			{Source: "input_tokens", Canonical: mlattr.GenAIInputTokens},
			{Source: "output_tokens", Canonical: mlattr.GenAIOutputTokens},
			{Source: "total_tokens", Canonical: mlattr.TotalTokens},
			{Source: "cache_read_input_tokens", Canonical: mlattr.GenAICacheReadTokens},
			{Source: "cache_creation_input_tokens", Canonical: mlattr.GenAICacheCreationTokens},
		}}, {Source: "mlflow.llm.cost", Fields: []table.Alias{
			{Source: "total_cost", Canonical: mlattr.UsageCost},
			{Source: "input_cost", Canonical: mlattr.UsageInputCost},
			{Source: "output_cost", Canonical: mlattr.UsageOutputCost},
		}}},
		Span: []table.Alias{
			{Source: "mlflow.llm.model", Canonical: mlattr.GenAIRequestModel, Reads: mlattr.JSONText},
			{Source: "mlflow.llm.provider", Canonical: mlattr.GenAIProviderName, Reads: mlattr.JSONText},
			{Source: "mlflow.spanType", Canonical: mlattr.GenAIOperationName, Reads: mlattr.JSONText, Words: mlflowTypes},
			{Source: "mlflow.trace.session", Canonical: mlattr.SessionID, Reads: mlattr.JSONText},
			{Source: "mlflow.trace.user", Canonical: mlattr.User, Kind: table.KindSecret, Reads: mlattr.JSONText},
		},
	}
}

var mlflowTypes = map[string]string{
	"LLM":        mlattr.OperationTextCompletion,
	"CHAT_MODEL": mlattr.OperationChat,
	"EMBEDDING":  mlattr.OperationEmbeddings,
	"RETRIEVER":  mlattr.OperationRetrieval,
	"TOOL":       mlattr.OperationExecuteTool,
	"AGENT":      mlattr.OperationInvokeAgent,
	"WORKFLOW":   mlattr.OperationInvokeWorkflow,
}
