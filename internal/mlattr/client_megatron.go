package mlattr

// megatron is the vocabulary of Megatron-LM. Its "throughput" counts
// floating-point operations, not tokens.
//
// Its numbers come by a bridge from TensorBoard, Weights & Biases or
// Prometheus, under the names that they have there. A number that only grows is
// a Counter here, although such a bridge sends a gauge.
func megatron() Table {
	return Table{
		Name:     "megatron",
		Packages: []string{"megatron"},
		Title:    "Megatron-LM",
		Page:     "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py",
		Services: []string{"megatron*"},
		Scopes:   []string{"megatron"},
		Changes: append(settings("megatron.", "num_layers", "hidden_size", "num_attention_heads", "train_iters",
			"micro_batch_size", "ckpt_format", "precision"),
			settings("dl.", "batch_size", "sequence_length", "tensor_parallel.size", "pipeline_parallel.size", "data_parallel.size")...),
		Metrics: []Metric{
			{Source: "iteration-time", Measure: MeasureStepDuration, Instrument: Gauge, Everyday: true},
			{Source: "throughput", Measure: MeasureFLOPThroughput, Instrument: Gauge, PerDevice: true, Everyday: true},
			{Source: "grad-norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "batch-size", Measure: MeasureBatchSize, Instrument: Gauge, Everyday: true},
			{Source: "learning-rate", Measure: MeasureLearningRate, Instrument: Gauge, Everyday: true},
		},
	}
}
