package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// dynamo is the vocabulary of the front end of NVIDIA Dynamo. Its workers pass on
// the metrics of vLLM, SGLang or TensorRT-LLM, which count the same requests and
// tokens again.
func dynamo() table.Table {
	return table.Table{
		Name:           "dynamo",
		Packages:       []string{"dynamo"},
		Title:          "NVIDIA Dynamo",
		Page:           "https://docs.nvidia.com/dynamo/latest/user-guides/observability-local/metrics",
		Services:       []string{"dynamo*"},
		MetricPrefixes: []string{"dynamo_"},
		Side:           mlattr.SideGateway,
		Span: []table.Alias{
			{Source: "x_request_id", Canonical: mlattr.RequestID},
		},
		Point: []table.Alias{
			{Source: "model", Canonical: mlattr.GenAIRequestModel},
		},
		Metrics: []table.Metric{
			{Source: "dynamo_frontend_output_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
			{Source: "dynamo_frontend_input_sequence_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "dynamo_frontend_output_sequence_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput, Repeats: []string{"dynamo_frontend_output_tokens"}},
			{Source: "dynamo_frontend_cached_tokens", Measure: table.MeasureCachedTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "dynamo_frontend_time_to_first_token_seconds", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "dynamo_frontend_inter_token_latency_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "dynamo_frontend_request_duration_seconds", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "dynamo_frontend_requests", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "dynamo_frontend_inflight_requests", Measure: table.MeasureRequestsRunning, Instrument: table.Gauge},
			{Source: "dynamo_frontend_queued_requests", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge},
		},
	}
}
