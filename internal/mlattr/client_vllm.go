package mlattr

// vllm is the vocabulary of vLLM, an inference server. Its span llm_request is
// sent when the request has ended. Its metrics come from Prometheus, or by way
// of Ray, which prefixes the names with "ray_".
func vllm() Table {
	return Table{
		Name:           "vllm",
		Packages:       []string{"vllm"},
		Title:          "vLLM",
		Page:           "https://docs.vllm.ai/en/latest/usage/metrics/",
		Services:       []string{"vllm*"},
		Scopes:         []string{"vllm."},
		KeyPrefixes:    []string{"gen_ai.latency.", "gen_ai.usage.num_sequences", "gen_ai.request.n"},
		MetricPrefixes: []string{"vllm:", "vllm_", "ray_vllm_", "ray_vllm:"},
		Span: []Alias{
			{Source: "gen_ai.latency.e2e", Canonical: Latency},
			{Source: "gen_ai.latency.time_to_first_token", Canonical: GenAITimeToFirstChunk},
			{Source: "gen_ai.latency.time_in_queue", Canonical: QueueTime},
			{Source: "gen_ai.latency.time_in_model_prefill", Canonical: PrefillTime},
			{Source: "gen_ai.latency.time_in_model_decode", Canonical: DecodeTime},
			{Source: "gen_ai.usage.num_sequences", Canonical: GenAIChoices},
			{Source: "gen_ai.request.n", Canonical: GenAIChoices},
		},
		Point: []Alias{
			{Source: "model_name", Canonical: GenAIRequestModel},
		},
		Names: []NameRule{
			{Match: Exact, Text: "llm_request", Operation: "llm_request"},
		},
		Metrics: []Metric{
			{Source: "vllm:prompt_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "vllm:generation_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "vllm:prompt_tokens_cached", Measure: MeasureCachedTokens, Instrument: Counter, TokenType: TokenTypeInput},
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
		},
	}
}
