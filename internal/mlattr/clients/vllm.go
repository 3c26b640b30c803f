package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// vllm is the vocabulary of vLLM, an inference server. Its span llm_request is
// sent when the request has ended; its keys are those of the GenAI vocabulary,
// because other servers send them, too. Its metrics come from Prometheus, or by
// way of Ray, which prefixes the names with "ray_". Cached tokens are part of the
// prompt's.
func vllm() table.Table {
	return table.Table{
		Name:           "vllm",
		Packages:       []string{"vllm"},
		Title:          "vLLM",
		Page:           "https://docs.vllm.ai/en/latest/usage/metrics/",
		Services:       []string{"vllm*"},
		Scopes:         []string{"vllm."},
		MetricPrefixes: []string{"vllm:", "vllm_", "ray_vllm_", "ray_vllm:"},
		Side:           mlattr.SideServer,
		Point: []table.Alias{
			{Source: "model_name", Canonical: mlattr.GenAIRequestModel},
			{Source: "finished_reason", Canonical: mlattr.GenAIFinishReasons, Kind: table.KindText},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "llm_request", Operation: "llm_request"},
		},
		Metrics: []table.Metric{
			{Source: "vllm:prompt_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "vllm:generation_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
			{Source: "vllm:prompt_tokens_cached", Measure: table.MeasureCachedTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "vllm:prompt_tokens_cached_by_source", Measure: table.MeasureCachedTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput, Repeats: []string{"vllm:prompt_tokens_cached"}},
			{Source: "vllm:prompt_tokens_by_source", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput, Repeats: []string{"vllm:prompt_tokens"}},
			{Source: "vllm:request_prompt_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput, Repeats: []string{"vllm:prompt_tokens"}},
			{Source: "vllm:request_generation_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput, Repeats: []string{"vllm:generation_tokens"}},
			// Input and output tokens, in each step of the engine.
			{Source: "vllm:iteration_tokens_total", Measure: table.MeasureTokens, Instrument: table.Histogram, Repeats: []string{
				"vllm:prompt_tokens", "vllm:generation_tokens", "vllm:request_prompt_tokens", "vllm:request_generation_tokens"}},
			{Source: "vllm:time_to_first_token_seconds", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "vllm:inter_token_latency_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "vllm:time_per_output_token_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "vllm:request_time_per_output_token_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "vllm:e2e_request_latency_seconds", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "vllm:request_queue_time_seconds", Measure: table.MeasureQueueTime, Instrument: table.Histogram},
			{Source: "vllm:request_prefill_time_seconds", Measure: table.MeasurePrefillTime, Instrument: table.Histogram},
			{Source: "vllm:request_decode_time_seconds", Measure: table.MeasureDecodeTime, Instrument: table.Histogram},
			{Source: "vllm:request_success", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "vllm:num_requests_running", Measure: table.MeasureRequestsRunning, Instrument: table.Gauge},
			{Source: "vllm:num_requests_waiting", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge},
			{Source: "vllm:num_requests_waiting_by_reason", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge, Repeats: []string{"vllm:num_requests_waiting"}},
			{Source: "vllm:kv_cache_usage_perc", Measure: table.MeasureKVCacheUtilization, Instrument: table.Gauge},
			// The name before vLLM 0.10.
			{Source: "vllm:gpu_cache_usage_perc", Measure: table.MeasureKVCacheUtilization, Instrument: table.Gauge, Repeats: []string{"vllm:kv_cache_usage_perc"}},
		},
	}
}
