package mlattr

// megatron is the vocabulary of Megatron-LM. Its own telemetry has the names
// that begin with "megatron.", and in newer versions those of nemoLens. Spans of
// steps are in neither's default, and the metrics are the means of a log
// interval.
//
// Names without a name space are those of TensorBoard, Weights & Biases and
// Prometheus, which come by a bridge. A number that only grows is a Counter
// here, although such a bridge sends a gauge. Their "throughput" counts
// floating-point operations, not tokens.
func megatron() Table {
	return Table{
		Name:           "megatron",
		Packages:       []string{"megatron"},
		Title:          "Megatron-LM",
		Page:           "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/telemetry/README.md",
		Services:       []string{"megatron*"},
		Scopes:         []string{"megatron"},
		KeyPrefixes:    []string{"megatron."},
		MetricPrefixes: []string{"megatron."},
		Traits:         []Trait{SomeRanksSend, StepsInMetrics},
		Changes: append(settings("megatron.", "num_layers", "hidden_size", "num_attention_heads", "train_iters",
			"micro_batch_size", "ckpt_format", "precision"),
			settings("dl.", "batch_size", "sequence_length", "tensor_parallel.size", "pipeline_parallel.size", "data_parallel.size")...),
		Span: []Alias{
			// The number of iterations before this one.
			{Source: "megatron.iteration", Canonical: Step, Offset: 1, SpanPrefixes: []string{"megatron.train."}},
			{Source: "megatron.iteration", Canonical: Step, SpanPrefixes: []string{"megatron.checkpoint."}},
		},
		Names: []NameRule{
			{Match: Exact, Text: "megatron.train.iteration", Phase: PhaseBatch, Operation: "train_iteration", WholeStep: true, Identifies: true},
			{Match: Exact, Text: "megatron.train.iteration.forward_backward", Phase: PhaseForwardBackward, Identifies: true},
			{Match: Exact, Text: "megatron.train.iteration.optimizer", Phase: PhaseOptimizer, Identifies: true},
			{Match: Exact, Text: "megatron.train.first_iteration", Operation: "first_iteration", Identifies: true},
			// What training waits for; megatron.checkpoint.save is within it, or
			// runs beside the training.
			{Match: Exact, Text: "megatron.checkpoint.exposed_save", Phase: PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true},
			{Match: Exact, Text: "megatron.checkpoint.load", Phase: PhaseCheckpoint, Operation: "load_checkpoint", Identifies: true},
			{Match: Exact, Text: "megatron.evaluate", Phase: PhaseValidation, Operation: "evaluate", Identifies: true},
			{Match: Prefix, Text: "megatron.", Identifies: true},
		},
		Metrics: []Metric{
			{Source: "megatron.training.step_duration_ms", Measure: MeasureStepDuration, Instrument: Histogram, Unit: "ms"},
			{Source: "megatron.training.tokens_per_sec", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeInput, OfJob: true},
			{Source: "megatron.training.loss", Measure: MeasureLoss, Instrument: Gauge},
			{Source: "megatron.training.grad_norm", Measure: MeasureGradientNorm, Instrument: Gauge},
			{Source: "megatron.training.learning_rate", Measure: MeasureLearningRate, Instrument: Gauge},
			{Source: "megatron.training.throughput_tflops", Measure: MeasureFLOPThroughput, Instrument: Gauge, PerDevice: true},
			{Source: "iteration-time", Measure: MeasureStepDuration, Instrument: Gauge, Everyday: true},
			{Source: "throughput", Measure: MeasureFLOPThroughput, Instrument: Gauge, PerDevice: true, Everyday: true},
			{Source: "grad-norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "batch-size", Measure: MeasureBatchSize, Instrument: Gauge, Everyday: true},
			{Source: "learning-rate", Measure: MeasureLearningRate, Instrument: Gauge, Everyday: true},
		},
	}
}
