package mlattr

// tgi is the vocabulary of Hugging Face's Text Generation Inference. Its times
// are text as Rust prints a duration: "1.23s", "45.6ms", "789µs", "12ns". Its
// keys are everyday words, so they are read only where the service's name
// identifies the client. Its spans have no token counts. They have the time per
// token: the time of the inference, without the queue, divided by the tokens.
// Its inverse is a rate that the client reports.
func tgi() Table {
	return Table{
		Name:           "tgi",
		Title:          "Text Generation Inference",
		Page:           "https://huggingface.co/docs/text-generation-inference/reference/metrics",
		Services:       []string{"text-generation-inference*", "tgi*"},
		Scopes:         []string{"text_generation_router"},
		MetricPrefixes: []string{"tgi_"},
		Side:           SideServer,
		Span: []Alias{
			{Source: "total_time", Canonical: Latency},
			{Source: "queue_time", Canonical: QueueTime},
			{Source: "time_per_token", Canonical: TokensPerSecond, Kind: KindSeconds, Inverse: true},
		},
		Names: []NameRule{
			{Match: Exact, Text: "generate", Operation: "generate"},
			{Match: Exact, Text: "generate_stream", Operation: "generate_stream"},
			{Match: Exact, Text: "compat_generate", Operation: "generate"},
			{Match: Exact, Text: "chat_completions", Operation: "chat_completions"},
			{Match: Exact, Text: "completions", Operation: "completions"},
		},
		Metrics: []Metric{
			{Source: "tgi_request_input_length", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "tgi_request_generated_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput},
			{Source: "tgi_request_duration", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "tgi_request_queue_duration", Measure: MeasureQueueTime, Instrument: Histogram},
			{Source: "tgi_request_mean_time_per_token_duration", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "tgi_request_count", Measure: MeasureRequests, Instrument: Counter},
		},
	}
}
