package mlattr

// transformers is the vocabulary of Hugging Face Transformers: of its Trainer,
// and of its continuous batching, which sends OTLP.
//
// The Trainer's numbers come by a bridge, as those of Megatron-LM do.
func transformers() Table {
	return Table{
		Name:     "transformers",
		Packages: []string{"transformers", "sentence_transformers"},
		Title:    "Hugging Face Transformers",
		Page:     "https://huggingface.co/docs/transformers/main_classes/trainer",
		Services: []string{"transformers*"},
		Scopes:   []string{"transformers."},
		Metrics: []Metric{
			{Source: "prefill_tokens_processed", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "decode_tokens_processed", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "ttft_milliseconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram, Unit: "ms"},
			{Source: "request_latency_milliseconds", Measure: MeasureRequestDuration, Instrument: Histogram, Unit: "ms"},
			{Source: "train_tokens_per_second", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeInput},
			{Source: "train_samples_per_second", Measure: MeasureSampleThroughput, Instrument: Gauge},
			{Source: "num_input_tokens_seen", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "grad_norm", Measure: MeasureGradientNorm, Instrument: Gauge, Everyday: true},
			{Source: "learning_rate", Measure: MeasureLearningRate, Instrument: Gauge, Everyday: true},
			{Source: "loss", Measure: MeasureLoss, Instrument: Gauge, Everyday: true},
		},
	}
}
