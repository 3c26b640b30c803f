package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// inferenceGateway is the vocabulary of the endpoint picker of the Gateway API
// Inference Extension and of llm-d. The servers that it chooses among count the
// same requests and tokens again.
func inferenceGateway() table.Table {
	return table.Table{
		Name:           "inference_gateway",
		Title:          "llm-d and Inference Gateway",
		Page:           "https://gateway-api-inference-extension.sigs.k8s.io/guides/metrics-and-observability/",
		Services:       []string{"llm-d*"},
		KeyPrefixes:    []string{"llm_d."},
		MetricPrefixes: []string{"inference_objective_", "inference_pool_", "inference_extension_"},
		Side:           mlattr.SideGateway,
		Span: []table.Alias{
			{Source: "llm_d.pd_proxy.true_ttft_ms", Canonical: mlattr.GenAITimeToFirstChunk, Factor: 1e-3},
		},
		Point: []table.Alias{
			{Source: "model_name", Canonical: mlattr.GenAIRequestModel},
		},
		Metrics: []table.Metric{
			{Source: "inference_objective_input_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "inference_objective_output_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput},
			{Source: "inference_objective_prompt_cached_tokens", Measure: table.MeasureCachedTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "inference_objective_request_ttft_seconds", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "inference_objective_request_tpot_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "inference_objective_request_duration_seconds", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "inference_objective_request", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "inference_objective_running_requests", Measure: table.MeasureRequestsRunning, Instrument: table.Gauge},
			{Source: "inference_extension_flow_control_queue_size", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge},
		},
	}
}
