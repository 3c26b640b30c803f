package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// triton is the vocabulary of Triton Inference Server, with the metrics of its
// TensorRT-LLM back end. An ensemble counts a request once for itself and once
// for each of its models. The back end's gauges of requests and KV blocks have
// their meaning in a label, so that only recording rules read them.
func triton() table.Table {
	return table.Table{
		Name:           "tritonserver",
		Packages:       []string{"tritonserver"},
		Title:          "Triton Inference Server",
		Page:           "https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/user_guide/metrics.html",
		Services:       []string{"triton*"},
		MetricPrefixes: []string{"nv_inference_", "nv_trt_llm_", "nv_llm_"},
		Side:           mlattr.SideServer,
		Point: []table.Alias{
			{Source: "model", Canonical: mlattr.GenAIRequestModel},
		},
		Metrics: []table.Metric{
			{Source: "nv_llm_input_token_len", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "nv_llm_output_token_len", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput},
			{Source: "nv_inference_request_success", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "nv_inference_request_failure", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "nv_inference_pending_request_count", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge},
		},
	}
}
