package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// megatron is the vocabulary of Megatron-LM. Its own telemetry has the names
// that begin with "megatron.", and in newer versions those of nemoLens. Spans of
// steps are in neither's default, and the metrics are the means of a log
// interval.
//
// Names without a name space are those of TensorBoard, Weights & Biases and
// Prometheus, which come by a bridge. A number that only grows is a Counter
// here, although such a bridge sends a gauge. Their "throughput" counts
// floating-point operations, not tokens.
func megatron() table.Table {
	return table.Table{
		Name:           "megatron",
		Packages:       []string{"megatron"},
		Title:          "Megatron-LM",
		Page:           "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/telemetry/README.md",
		Services:       []string{"megatron*"},
		Scopes:         []string{"megatron"},
		KeyPrefixes:    []string{"megatron."},
		MetricPrefixes: []string{"megatron."},
		Traits:         []table.Trait{table.SomeRanksSend, table.StepsInMetrics},
		Changes: append(settings("megatron.", "num_layers", "hidden_size", "num_attention_heads", "train_iters",
			"micro_batch_size", "ckpt_format", "precision"),
			settings("dl.", "batch_size", "sequence_length", "tensor_parallel.size", "pipeline_parallel.size", "data_parallel.size")...),
		Span: []table.Alias{
			// The number of iterations before this one.
			{Source: "megatron.iteration", Canonical: mlattr.Step, Offset: 1, SpanPrefixes: []string{"megatron.train."}},
			{Source: "megatron.iteration", Canonical: mlattr.Step, SpanPrefixes: []string{"megatron.checkpoint."}},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "megatron.train.iteration", Phase: mlattr.PhaseBatch, Operation: "train_iteration", WholeStep: true, Identifies: true},
			{Match: table.Exact, Text: "megatron.train.iteration.forward_backward", Phase: mlattr.PhaseForwardBackward, Identifies: true},
			{Match: table.Exact, Text: "megatron.train.iteration.optimizer", Phase: mlattr.PhaseOptimizer, Identifies: true},
			{Match: table.Exact, Text: "megatron.train.first_iteration", Operation: "first_iteration", Identifies: true},
			// What training waits for; megatron.checkpoint.save is within it, or
			// runs beside the training.
			{Match: table.Exact, Text: "megatron.checkpoint.exposed_save", Phase: mlattr.PhaseCheckpoint, Operation: "save_checkpoint", Identifies: true},
			{Match: table.Exact, Text: "megatron.checkpoint.load", Phase: mlattr.PhaseCheckpoint, Operation: "load_checkpoint", Identifies: true},
			{Match: table.Exact, Text: "megatron.evaluate", Phase: mlattr.PhaseValidation, Operation: "evaluate", Identifies: true},
			{Match: table.Prefix, Text: "megatron.", Identifies: true},
		},
		Metrics: []table.Metric{
			{Source: "megatron.training.step_duration_ms", Measure: table.MeasureStepDuration, Instrument: table.Histogram, Unit: "ms"},
			{Source: "megatron.training.tokens_per_sec", Measure: table.MeasureTokenThroughput, Instrument: table.Gauge, TokenType: mlattr.TokenTypeInput, OfJob: true},
			{Source: "megatron.training.loss", Measure: table.MeasureLoss, Instrument: table.Gauge},
			{Source: "megatron.training.grad_norm", Measure: table.MeasureGradientNorm, Instrument: table.Gauge},
			{Source: "megatron.training.learning_rate", Measure: table.MeasureLearningRate, Instrument: table.Gauge},
			{Source: "megatron.training.throughput_tflops", Measure: table.MeasureFLOPThroughput, Instrument: table.Gauge, PerDevice: true},
			{Source: "iteration-time", Measure: table.MeasureStepDuration, Instrument: table.Gauge, Everyday: true},
			{Source: "throughput", Measure: table.MeasureFLOPThroughput, Instrument: table.Gauge, PerDevice: true, Everyday: true},
			{Source: "grad-norm", Measure: table.MeasureGradientNorm, Instrument: table.Gauge, Everyday: true},
			{Source: "batch-size", Measure: table.MeasureBatchSize, Instrument: table.Gauge, Everyday: true},
			{Source: "learning-rate", Measure: table.MeasureLearningRate, Instrument: table.Gauge, Everyday: true},
		},
	}
}
