package mlattr

// sglang is the vocabulary of the metrics that SGLang, an inference server,
// exposes to Prometheus.
func sglang() Table {
	return Table{
		Name:           "sglang",
		Packages:       []string{"sglang"},
		Title:          "SGLang",
		Page:           "https://docs.sglang.ai/references/production_metrics.html",
		Services:       []string{"sglang*"},
		MetricPrefixes: []string{"sglang:", "sglang_", "ray_sglang_"},
		Point: []Alias{
			{Source: "model_name", Canonical: GenAIRequestModel},
		},
		Metrics: []Metric{
			{Source: "sglang:prompt_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "sglang:generation_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "sglang:cached_tokens", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "sglang:gen_throughput", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeOutput},
			{Source: "sglang:time_to_first_token_seconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "sglang:time_per_output_token_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "sglang:inter_token_latency_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "sglang:e2e_request_latency_seconds", Measure: MeasureRequestDuration, Instrument: Histogram},
		},
	}
}
