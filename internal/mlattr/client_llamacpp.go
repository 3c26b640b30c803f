package mlattr

// llamaCpp is the vocabulary of the server of llama.cpp, started with --metrics.
// The cached tokens are not part of llamacpp:prompt_tokens, so that both counters
// together are the input. No metric has labels.
func llamaCpp() Table {
	return Table{
		Name:           "llama_cpp",
		Packages:       []string{"llama_cpp"},
		Title:          "llama.cpp",
		Page:           "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
		Services:       []string{"llama.cpp*", "llama-cpp*", "llamacpp*"},
		MetricPrefixes: []string{"llamacpp:", "llamacpp_"},
		Side:           SideServer,
		Metrics: []Metric{
			{Source: "llamacpp:prompt_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "llamacpp:prompt_tokens_cached", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "llamacpp:tokens_predicted", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "llamacpp:prompt_tokens_seconds", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeInput},
			{Source: "llamacpp:predicted_tokens_seconds", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeOutput},
			{Source: "llamacpp:requests_processing", Measure: MeasureRequestsRunning, Instrument: Gauge},
			{Source: "llamacpp:requests_deferred", Measure: MeasureRequestsWaiting, Instrument: Gauge},
		},
	}
}
