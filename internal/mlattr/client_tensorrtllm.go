package mlattr

// tensorRTLLM is the vocabulary of trtllm-serve, the server of TensorRT-LLM. Its
// metrics of requests need return_perf_metrics, those of the engine
// enable_iter_perf_stats. Earlier versions have no counters of tokens.
func tensorRTLLM() Table {
	return Table{
		Name:           "tensorrt_llm",
		Packages:       []string{"tensorrt_llm"},
		Title:          "TensorRT-LLM",
		Page:           "https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve/trtllm-serve.html",
		Services:       []string{"trtllm*", "tensorrt_llm*"},
		Scopes:         []string{"trt.llm"},
		MetricPrefixes: []string{"trtllm_"},
		Side:           SideServer,
		Point: []Alias{
			{Source: "model_name", Canonical: GenAIRequestModel},
			{Source: "finished_reason", Canonical: GenAIFinishReasons, Kind: KindText},
		},
		Names: []NameRule{
			{Match: Exact, Text: "llm_request", Operation: "llm_request"},
		},
		Metrics: []Metric{
			{Source: "trtllm_prompt_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "trtllm_generation_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "trtllm_prompt_cached_tokens", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "trtllm_time_to_first_token_seconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "trtllm_time_per_output_token_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "trtllm_e2e_request_latency_seconds", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "trtllm_request_queue_time_seconds", Measure: MeasureQueueTime, Instrument: Histogram},
			{Source: "trtllm_request_prefill_time_seconds", Measure: MeasurePrefillTime, Instrument: Histogram},
			{Source: "trtllm_request_decode_time_seconds", Measure: MeasureDecodeTime, Instrument: Histogram},
			{Source: "trtllm_request_success", Measure: MeasureRequests, Instrument: Counter},
			{Source: "trtllm_num_requests_completed", Measure: MeasureRequests, Instrument: Counter, Repeats: []string{"trtllm_request_success"}},
			{Source: "trtllm_num_requests_running", Measure: MeasureRequestsRunning, Instrument: Gauge},
			{Source: "trtllm_num_requests_waiting", Measure: MeasureRequestsWaiting, Instrument: Gauge},
			{Source: "trtllm_kv_cache_utilization", Measure: MeasureKVCacheUtilization, Instrument: Gauge},
		},
	}
}
