package mlattr

// sglang is the vocabulary of SGLang, an inference server. Cached tokens are part
// of the prompt's. Schedulers report a metric once for each of their ranks where
// --enable-metrics-for-all-schedulers is set.
func sglang() Table {
	return Table{
		Name:           "sglang",
		Packages:       []string{"sglang"},
		Title:          "SGLang",
		Page:           "https://docs.sglang.ai/references/production_metrics.html",
		Services:       []string{"sglang*"},
		Scopes:         []string{"sglang"},
		MetricPrefixes: []string{"sglang:", "sglang_", "ray_sglang_"},
		Side:           SideServer,
		Replicas:       []string{"tp_rank", "pp_rank", "moe_ep_rank"},
		Point: []Alias{
			{Source: "model_name", Canonical: GenAIRequestModel},
		},
		Metrics: []Metric{
			{Source: "sglang:prompt_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "sglang:generation_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "sglang:prompt_tokens_histogram", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput, Repeats: []string{"sglang:prompt_tokens"}},
			{Source: "sglang:generation_tokens_histogram", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput, Repeats: []string{"sglang:generation_tokens"}},
			// Input and output tokens, while requests run.
			{Source: "sglang:realtime_tokens", Measure: MeasureTokens, Instrument: Counter, Repeats: []string{
				"sglang:prompt_tokens", "sglang:generation_tokens", "sglang:prompt_tokens_histogram", "sglang:generation_tokens_histogram"}},
			{Source: "sglang:cached_tokens", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "sglang:gen_throughput", Measure: MeasureTokenThroughput, Instrument: Gauge, TokenType: TokenTypeOutput},
			{Source: "sglang:time_to_first_token_seconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "sglang:time_per_output_token_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "sglang:inter_token_latency_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "sglang:e2e_request_latency_seconds", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "sglang:queue_time_seconds", Measure: MeasureQueueTime, Instrument: Histogram},
			{Source: "sglang:num_requests", Measure: MeasureRequests, Instrument: Counter},
			{Source: "sglang:num_running_reqs", Measure: MeasureRequestsRunning, Instrument: Gauge},
			{Source: "sglang:num_queue_reqs", Measure: MeasureRequestsWaiting, Instrument: Gauge},
			{Source: "sglang:token_usage", Measure: MeasureKVCacheUtilization, Instrument: Gauge},
		},
	}
}
