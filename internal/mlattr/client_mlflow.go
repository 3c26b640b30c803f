package mlattr

// mlflow is the vocabulary of MLflow Tracing. It writes every value as JSON,
// so that a text has quotes.
func mlflow() Table {
	return Table{
		Name:          "mlflow",
		Title:         "MLflow Tracing",
		Page:          "https://mlflow.org/docs/latest/genai/tracing/",
		Scopes:        []string{"mlflow."},
		KeyPrefixes:   []string{"mlflow."},
		Runners:       []string{"mlflow"},
		Packages:      []string{"mlflow"},
		ToolArguments: []string{"mlflow.spanInputs"},
		FirstTokens:   []FirstToken{{Event: "mlflow.chunk.item.0"}},
		SpanMaps: []MapAlias{{Source: "mlflow.chat.tokenUsage", Fields: []Alias{
			{Source: "input_tokens", Canonical: GenAIInputTokens},
			{Source: "output_tokens", Canonical: GenAIOutputTokens},
			{Source: "total_tokens", Canonical: TotalTokens},
			{Source: "cache_read_input_tokens", Canonical: GenAICacheReadTokens},
			{Source: "cache_creation_input_tokens", Canonical: GenAICacheCreationTokens},
		}}, {Source: "mlflow.llm.cost", Fields: []Alias{
			{Source: "total_cost", Canonical: UsageCost},
			{Source: "input_cost", Canonical: UsageInputCost},
			{Source: "output_cost", Canonical: UsageOutputCost},
		}}},
		Span: []Alias{
			{Source: "mlflow.llm.model", Canonical: GenAIRequestModel, Reads: jsonText},
			{Source: "mlflow.llm.provider", Canonical: GenAIProviderName, Reads: jsonText},
			{Source: "mlflow.spanType", Canonical: GenAIOperationName, Reads: jsonText, Words: mlflowTypes},
			{Source: "mlflow.trace.session", Canonical: SessionID, Reads: jsonText},
			{Source: "mlflow.trace.user", Canonical: User, Kind: KindSecret, Reads: jsonText},
		},
	}
}

var mlflowTypes = map[string]string{
	"LLM":        OperationTextCompletion,
	"CHAT_MODEL": OperationChat,
	"EMBEDDING":  OperationEmbeddings,
	"RETRIEVER":  OperationRetrieval,
	"TOOL":       OperationExecuteTool,
	"AGENT":      OperationInvokeAgent,
	"WORKFLOW":   OperationInvokeWorkflow,
}
