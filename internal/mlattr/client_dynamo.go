package mlattr

// dynamo is the vocabulary of the front end of NVIDIA Dynamo. Its workers pass on
// the metrics of vLLM, SGLang or TensorRT-LLM, which count the same requests and
// tokens again.
func dynamo() Table {
	return Table{
		Name:           "dynamo",
		Packages:       []string{"dynamo"},
		Title:          "NVIDIA Dynamo",
		Page:           "https://docs.nvidia.com/dynamo/latest/user-guides/observability-local/metrics",
		Services:       []string{"dynamo*"},
		MetricPrefixes: []string{"dynamo_"},
		Side:           SideGateway,
		Span: []Alias{
			{Source: "x_request_id", Canonical: RequestID},
		},
		Point: []Alias{
			{Source: "model", Canonical: GenAIRequestModel},
		},
		Metrics: []Metric{
			{Source: "dynamo_frontend_output_tokens", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
			{Source: "dynamo_frontend_input_sequence_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "dynamo_frontend_output_sequence_tokens", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput, Repeats: []string{"dynamo_frontend_output_tokens"}},
			{Source: "dynamo_frontend_cached_tokens", Measure: MeasureCachedTokens, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "dynamo_frontend_time_to_first_token_seconds", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "dynamo_frontend_inter_token_latency_seconds", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
			{Source: "dynamo_frontend_request_duration_seconds", Measure: MeasureRequestDuration, Instrument: Histogram},
			{Source: "dynamo_frontend_requests", Measure: MeasureRequests, Instrument: Counter},
			{Source: "dynamo_frontend_inflight_requests", Measure: MeasureRequestsRunning, Instrument: Gauge},
			{Source: "dynamo_frontend_queued_requests", Measure: MeasureRequestsWaiting, Instrument: Gauge},
		},
	}
}
