package mlattr

// triton is the vocabulary of Triton Inference Server, with the metrics of its
// TensorRT-LLM back end. An ensemble counts a request once for itself and once
// for each of its models. The back end's gauges of requests and KV blocks have
// their meaning in a label, so that only recording rules read them.
func triton() Table {
	return Table{
		Name:           "tritonserver",
		Packages:       []string{"tritonserver"},
		Title:          "Triton Inference Server",
		Page:           "https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/user_guide/metrics.html",
		Services:       []string{"triton*"},
		MetricPrefixes: []string{"nv_inference_", "nv_trt_llm_", "nv_llm_"},
		Side:           SideServer,
		Point: []Alias{
			{Source: "model", Canonical: GenAIRequestModel},
		},
		Metrics: []Metric{
			{Source: "nv_llm_input_token_len", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeInput},
			{Source: "nv_llm_output_token_len", Measure: MeasureTokens, Instrument: Histogram, TokenType: TokenTypeOutput},
			{Source: "nv_inference_request_success", Measure: MeasureRequests, Instrument: Counter},
			{Source: "nv_inference_request_failure", Measure: MeasureRequests, Instrument: Counter},
			{Source: "nv_inference_pending_request_count", Measure: MeasureRequestsWaiting, Instrument: Gauge},
		},
	}
}
