package mlattr

// inferenceGateway is the vocabulary of the endpoint picker of the Gateway API
// Inference Extension and of llm-d. The servers that it chooses among count the
// same requests and tokens again.
func inferenceGateway() Table {
	return Table{
		Name:           "inference_gateway",
		Title:          "llm-d and Inference Gateway",
		Page:           "https://gateway-api-inference-extension.sigs.k8s.io/guides/metrics-and-observability/",
		Services:       []string{"llm-d*"},
		KeyPrefixes:    []string{"llm_d."},
		MetricPrefixes: []string{"inference_objective_", "inference_pool_", "inference_extension_"},
		Side:           SideGateway,
		Span: []Alias{
			{Source: "llm_d.pd_proxy.true_ttft_ms", Canonical: GenAITimeToFirstChunk, Factor: 1e-3},
		},
		Point: []Alias{
			{Source: "model_name", Canonical: GenAIRequestModel},
		},
		Metrics: []Metric{
			{Source: "inference_objective_input_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "inference_objective_output_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput},
			{Source: "inference_objective_prompt_cached_tokens", Measure: MeasureCachedTokens, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "inference_objective_request_ttft_seconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "inference_objective_request_tpot_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "inference_objective_request_duration_seconds", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "inference_objective_request", Measure: MeasureRequests, Instrument: Counter},
			{Source: "inference_objective_running_requests", Measure: MeasureRequestsRunning, Instrument: Gauge},
			{Source: "inference_extension_flow_control_queue_size", Measure: MeasureRequestsWaiting, Instrument: Gauge},
		},
	}
}
