package mlattr

// vllm is the vocabulary of vLLM, an inference server. Its span llm_request is
// sent when the request has ended; its keys are those of the GenAI vocabulary,
// because other servers send them, too. Its metrics come from Prometheus, or by
// way of Ray, which prefixes the names with "ray_". Cached tokens are part of the
// prompt's.
func vllm() Table {
	return Table{
		Name:           "vllm",
		Packages:       []string{"vllm"},
		Title:          "vLLM",
		Page:           "https://docs.vllm.ai/en/latest/usage/metrics/",
		Services:       []string{"vllm*"},
		Scopes:         []string{"vllm."},
		MetricPrefixes: []string{"vllm:", "vllm_", "ray_vllm_", "ray_vllm:"},
		Side:           SideServer,
		Point: []Alias{
			{Source: "model_name", Canonical: GenAIRequestModel},
			{Source: "finished_reason", Canonical: GenAIFinishReasons, Kind: KindText},
		},
		Names: []NameRule{
			{Match: Exact, Text: "llm_request", Operation: "llm_request"},
		},
		Metrics: []Metric{
			{Source: "vllm:prompt_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "vllm:generation_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "vllm:prompt_tokens_cached", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "vllm:prompt_tokens_cached_by_source", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput, Repeats: []string{"vllm:prompt_tokens_cached"}},
			{Source: "vllm:prompt_tokens_by_source", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput, Repeats: []string{"vllm:prompt_tokens"}},
			{Source: "vllm:request_prompt_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput, Repeats: []string{"vllm:prompt_tokens"}},
			{Source: "vllm:request_generation_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput, Repeats: []string{"vllm:generation_tokens"}},
			// Input and output tokens, in each step of the engine.
			{Source: "vllm:iteration_tokens_total", Measure: MeasureTokens, Instrument: Histogram, Repeats: []string{
				"vllm:prompt_tokens", "vllm:generation_tokens", "vllm:request_prompt_tokens", "vllm:request_generation_tokens"}},
			{Source: "vllm:time_to_first_token_seconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "vllm:inter_token_latency_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "vllm:time_per_output_token_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "vllm:request_time_per_output_token_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "vllm:e2e_request_latency_seconds", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "vllm:request_queue_time_seconds", Measure: MeasureQueueTime, Instrument: Histogram},
			{Source: "vllm:request_prefill_time_seconds", Measure: MeasurePrefillTime, Instrument: Histogram},
			{Source: "vllm:request_decode_time_seconds", Measure: MeasureDecodeTime, Instrument: Histogram},
			{Source: "vllm:request_success", Measure: MeasureRequests, Instrument: Counter},
			{Source: "vllm:num_requests_running", Measure: MeasureRequestsRunning, Instrument: Gauge},
			{Source: "vllm:num_requests_waiting", Measure: MeasureRequestsWaiting, Instrument: Gauge},
			{Source: "vllm:num_requests_waiting_by_reason", Measure: MeasureRequestsWaiting, Instrument: Gauge, Repeats: []string{"vllm:num_requests_waiting"}},
			{Source: "vllm:kv_cache_usage_perc", Measure: MeasureKVCacheUtilization, Instrument: Gauge},
			// The name before vLLM 0.10.
			{Source: "vllm:gpu_cache_usage_perc", Measure: MeasureKVCacheUtilization, Instrument: Gauge, Repeats: []string{"vllm:kv_cache_usage_perc"}},
		},
	}
}
