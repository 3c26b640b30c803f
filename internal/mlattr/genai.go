package mlattr

// genAI is what the instrumentations of LLM clients send in place of the
// conventions' current names. Every key has a name space of its own, so the
// rules need no recognition of the client.
func genAI() Table {
	return Table{
		System:      GenAI,
		Name:        "genai",
		KeyPrefixes: []string{"gen_ai.", "llm.", "ai.", "session.", "langfuse.", "traceloop.", "openinference."},
		Span: []Alias{
			{Source: "gen_ai.usage.prompt_tokens", Canonical: GenAIInputTokens},
			{Source: "llm.usage.prompt_tokens", Canonical: GenAIInputTokens},
			{Source: "llm.token_count.prompt", Canonical: GenAIInputTokens},
			{Source: "ai.usage.inputTokens", Canonical: GenAIInputTokens},
			{Source: "ai.usage.promptTokens", Canonical: GenAIInputTokens},
			{Source: "gen_ai.usage.completion_tokens", Canonical: GenAIOutputTokens},
			{Source: "llm.usage.completion_tokens", Canonical: GenAIOutputTokens},
			{Source: "llm.token_count.completion", Canonical: GenAIOutputTokens},
			{Source: "ai.usage.outputTokens", Canonical: GenAIOutputTokens},
			{Source: "ai.usage.completionTokens", Canonical: GenAIOutputTokens},
			{Source: "gen_ai.latency.e2e", Canonical: Latency},
			{Source: "llm.request.model", Canonical: GenAIRequestModel},
			// OpenInference's is the model that answered: the one that was asked
			// for is within the JSON of llm.invocation_parameters only.
			{Source: "llm.response.model", Canonical: GenAIResponseModel},
			{Source: "llm.model_name", Canonical: GenAIResponseModel},
			{Source: "ai.model.id", Canonical: GenAIRequestModel},
			{Source: "openinference.span.kind", Canonical: GenAIOperationName, Reads: oneOf(openInferenceKinds)},
			{Source: "traceloop.span.kind", Canonical: GenAIOperationName, Reads: oneOf(traceloopKinds)},
			{Source: "llm.request.type", Canonical: GenAIOperationName, Reads: oneOf(requestTypes)},
			{Source: "gen_ai.conversation.id", Canonical: SessionID},
			{Source: "session.id", Canonical: SessionID},
			{Source: "langfuse.session.id", Canonical: SessionID},
			{Source: "traceloop.association.properties.session_id", Canonical: SessionID},
			{Source: "ai.telemetry.metadata.sessionId", Canonical: SessionID},
			{Source: "gen_ai.request.id", Canonical: RequestID},
			{Source: "gen_ai.response.id", Canonical: RequestID},
			{Source: "ai.response.id", Canonical: RequestID},
		},
	}
}

// The clients' words for the operations that the conventions name. What is not
// listed, such as a chain or a task, is no operation there.
var (
	openInferenceKinds = map[string]string{
		"LLM":       OperationChat,
		"EMBEDDING": OperationEmbeddings,
		"RETRIEVER": OperationRetrieval,
		"TOOL":      OperationExecuteTool,
		"AGENT":     OperationInvokeAgent,
	}
	traceloopKinds = map[string]string{
		"workflow": OperationInvokeWorkflow,
		"agent":    OperationInvokeAgent,
		"tool":     OperationExecuteTool,
	}
	requestTypes = map[string]string{
		"chat":       OperationChat,
		"completion": OperationTextCompletion,
		"embedding":  OperationEmbeddings,
	}
)

// AsksModel says whether an operation of the conventions is one request to a
// model, and not the work of a program that may make several.
func AsksModel(operation string) bool {
	switch operation {
	case OperationChat, OperationTextCompletion, OperationGenerateContent, OperationEmbeddings:
		return true
	default:
		return false
	}
}
