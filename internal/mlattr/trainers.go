package mlattr

// The vocabularies in this file are of programs that have no OTLP of their own:
// their numbers arrive by a bridge from TensorBoard, Weights & Biases or
// Prometheus, under the names that they have there. A number that only grows
// is a counter here, although such a bridge sends a gauge.

// transformers is the vocabulary of Hugging Face Transformers: of its Trainer,
// and of its continuous batching, which does send OTLP.
func transformers() Table {
	return Table{
		System:   Transformers,
		Name:     "transformers",
		Title:    "Hugging Face Transformers",
		Page:     "https://huggingface.co/docs/transformers/main_classes/trainer",
		Services: []string{"transformers*"},
		Scopes:   []string{"transformers."},
		Metrics: []Metric{
			{Source: "prefill_tokens_processed", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "decode_tokens_processed", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "ttft_milliseconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram, Unit: "ms"},
			{Source: "train_tokens_per_second", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeInput},
			{Source: "train_samples_per_second", Measure: MeasureSampleThroughput, Instrument: Gauge},
			{Source: "num_input_tokens_seen", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "grad_norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "learning_rate", Measure: MeasureLearningRate, Instrument: Gauge, Everyday: true},
			{Source: "loss", Measure: MeasureLoss, Instrument: Gauge, Everyday: true},
		},
	}
}

// torchTitan is the vocabulary of torchtitan. Each device reports for itself.
func torchTitan() Table {
	return Table{
		System:   TorchTitan,
		Name:     "torchtitan",
		Title:    "torchtitan",
		Page:     "https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/metrics.py",
		Services: []string{"torchtitan*"},
		Scopes:   []string{"torchtitan"},
		Metrics: []Metric{
			{Source: "throughput(tps)", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeInput, PerDevice: true},
			{Source: "tflops", Measure: MeasureFLOPThroughput, Instrument: Gauge, PerDevice: true, Everyday: true},
			{Source: "mfu(%)", Measure: MeasureMFU, Instrument: Gauge, Unit: "%", PerDevice: true, Everyday: true},
			{Source: "loss_metrics/global_avg_loss", Measure: MeasureLoss, Instrument: Gauge},
			{Source: "loss_metrics/global_max_loss", Measure: MeasureLoss, Instrument: Gauge, Repeats: []string{"loss_metrics/global_avg_loss"}},
			{Source: "grad_norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "time_metrics/end_to_end(s)", Measure: MeasureStepDuration, Instrument: Gauge},
			{Source: "time_metrics/data_loading(s)", Measure: MeasureDataLoadTime, Instrument: Gauge},
			{Source: "n_tokens_seen", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
		},
	}
}

// megatron is the vocabulary of Megatron-LM. Its "throughput" is of
// floating-point operations, and no tokens.
func megatron() Table {
	return Table{
		System:   Megatron,
		Name:     "megatron",
		Title:    "Megatron-LM",
		Page:     "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py",
		Services: []string{"megatron*"},
		Scopes:   []string{"megatron"},
		Metrics: []Metric{
			{Source: "iteration-time", Measure: MeasureStepDuration, Instrument: Gauge, Everyday: true},
			{Source: "throughput", Measure: MeasureFLOPThroughput, Instrument: Gauge, PerDevice: true, Everyday: true},
			{Source: "grad-norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "batch-size", Measure: MeasureBatchSize, Instrument: Gauge, Everyday: true},
			{Source: "learning-rate", Measure: MeasureLearningRate, Instrument: Gauge, Everyday: true},
		},
	}
}
