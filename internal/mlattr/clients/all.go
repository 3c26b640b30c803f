// Package clients has the table of each client, a file each. A table says what the
// client sends and has no rule; package vocabulary reads by them.
package clients

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"

// all builds the tables of the clients, in the order in which their rules are
// tried. A client is added by a file with its table and a line here. The bit of a
// client is its index in this list, so that new ones go to the end.
var all = [...]func() table.Table{
	torchTel,
	tuft,
	snakepit,
	fx,
	taskWeaver,
	genAI,
	vllm,
	openLLMetry,
	openInference,
	vercel,
	mlflow,
	langfuse,
	tgi,
	sglang,
	transformers,
	torchTitan,
	megatron,
	logfire,
	langSmith,
	pydanticAI,
	openLIT,
	strands,
	anthropicSDK,
	springAI,
	dify,
	agentDevelopmentKit,
	tensorRTLLM,
	triton,
	dynamo,
	inferenceGateway,
	llamaCpp,
	liteLLM,
	nemoLens,
	axolotl,
	rayTrain,
	ncclInspector,
	semanticKernel,
	bedrock,
	genkit,
	haystack,
	mlLines,
}

// Count is the number of clients.
const Count = len(all)

// All returns the tables of the clients, in the order in which their rules are
// tried.
func All() []table.Table {
	tables := make([]table.Table, len(all))
	for i, build := range all {
		tables[i] = build()
	}
	return tables
}
