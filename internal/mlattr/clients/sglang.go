package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// sglang is the vocabulary of SGLang, an inference server. Cached tokens are part
// of the prompt's. Schedulers report a metric once for each of their ranks where
// --enable-metrics-for-all-schedulers is set.
func sglang() table.Table {
	return table.Table{
		Name:           "sglang",
		Packages:       []string{"sglang"},
		Title:          "SGLang",
		Page:           "https://docs.sglang.ai/references/production_metrics.html",
		Services:       []string{"sglang*"},
		Scopes:         []string{"sglang"},
		MetricPrefixes: []string{"sglang:", "sglang_", "ray_sglang_"},
		Side:           mlattr.SideServer,
		Replicas:       []string{"tp_rank", "pp_rank", "moe_ep_rank"},
		Point: []table.Alias{
			{Source: "model_name", Canonical: mlattr.GenAIRequestModel},
		},
		Metrics: []table.Metric{
			{Source: "sglang:prompt_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "sglang:generation_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
			{Source: "sglang:prompt_tokens_histogram", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput, Repeats: []string{"sglang:prompt_tokens"}},
			{Source: "sglang:generation_tokens_histogram", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput, Repeats: []string{"sglang:generation_tokens"}},
			// Input and output tokens, while requests run.
			{Source: "sglang:realtime_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, Repeats: []string{
				"sglang:prompt_tokens", "sglang:generation_tokens", "sglang:prompt_tokens_histogram", "sglang:generation_tokens_histogram"}},
			{Source: "sglang:cached_tokens", Measure: table.MeasureCachedTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "sglang:gen_throughput", Measure: table.MeasureTokenThroughput, Instrument: table.Gauge, TokenType: mlattr.TokenTypeOutput},
			{Source: "sglang:time_to_first_token_seconds", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "sglang:time_per_output_token_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "sglang:inter_token_latency_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "sglang:e2e_request_latency_seconds", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "sglang:queue_time_seconds", Measure: table.MeasureQueueTime, Instrument: table.Histogram},
			{Source: "sglang:num_requests", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "sglang:num_running_reqs", Measure: table.MeasureRequestsRunning, Instrument: table.Gauge},
			{Source: "sglang:num_queue_reqs", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge},
			{Source: "sglang:token_usage", Measure: table.MeasureKVCacheUtilization, Instrument: table.Gauge},
		},
	}
}
