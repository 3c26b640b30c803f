package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// transformers is the vocabulary of Hugging Face Transformers: of its Trainer,
// and of its continuous batching, which sends OTLP.
//
// The Trainer's numbers come by a bridge, as those of Megatron-LM do.
func transformers() table.Table {
	return table.Table{
		Name:     "transformers",
		Packages: []string{"transformers", "sentence_transformers"},
		Title:    "Hugging Face Transformers",
		Page:     "https://huggingface.co/docs/transformers/main_classes/trainer",
		Services: []string{"transformers*"},
		Scopes:   []string{"transformers."},
		Metrics: []table.Metric{
			{Source: "prefill_tokens_processed", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "decode_tokens_processed", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
			{Source: "ttft_milliseconds", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram, Unit: "ms"},
			{Source: "request_latency_milliseconds", Measure: table.MeasureRequestDuration, Instrument: table.Histogram, Unit: "ms"},
			{Source: "train_tokens_per_second", Measure: table.MeasureTokenThroughput, Instrument: table.Gauge, TokenType: mlattr.TokenTypeInput},
			{Source: "train_samples_per_second", Measure: table.MeasureSampleThroughput, Instrument: table.Gauge},
			{Source: "num_input_tokens_seen", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "grad_norm", Measure: table.MeasureGradientNorm, Instrument: table.Gauge, Everyday: true},
			{Source: "learning_rate", Measure: table.MeasureLearningRate, Instrument: table.Gauge, Everyday: true},
			{Source: "loss", Measure: table.MeasureLoss, Instrument: table.Gauge, Everyday: true},
		},
	}
}
