package mlattr

// clients builds the tables of the clients, in the order in which their rules are
// tried. A client is added by a file with its table and a line here. The bit of a
// client is its index in this list, so that new ones go to the end.
var clients = [...]func() Table{
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
}

// Tables returns every vocabulary in the order in which their rules are tried.
// The first and the last, those of launchers and of users, have no System: they
// are part of every Reader.
func Tables() []Table {
	tables := []Table{launchers()}
	for i, build := range clients {
		table := build()
		table.System = 1 << i
		tables = append(tables, table)
	}
	return append(tables, users())
}

// collectKeys concatenates a list of all tables, in their order, without
// duplicates.
func collectKeys(list func(*Table) []string) (keys []string) {
	seen := make(map[string]bool)
	for _, t := range Tables() {
		for _, key := range list(&t) {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}
