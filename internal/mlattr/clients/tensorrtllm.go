package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// tensorRTLLM is the vocabulary of trtllm-serve, the server of TensorRT-LLM. Its
// metrics of requests need return_perf_metrics, those of the engine
// enable_iter_perf_stats. Earlier versions have no counters of tokens.
func tensorRTLLM() table.Table {
	return table.Table{
		Name:           "tensorrt_llm",
		Packages:       []string{"tensorrt_llm"},
		Title:          "TensorRT-LLM",
		Page:           "https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve/trtllm-serve.html",
		Services:       []string{"trtllm*", "tensorrt_llm*"},
		Scopes:         []string{"trt.llm"},
		MetricPrefixes: []string{"trtllm_"},
		Side:           mlattr.SideServer,
		Point: []table.Alias{
			{Source: "model_name", Canonical: mlattr.GenAIRequestModel},
			{Source: "finished_reason", Canonical: mlattr.GenAIFinishReasons, Kind: table.KindText},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "llm_request", Operation: "llm_request"},
		},
		Metrics: []table.Metric{
			{Source: "trtllm_prompt_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "trtllm_generation_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
			{Source: "trtllm_prompt_cached_tokens", Measure: table.MeasureCachedTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "trtllm_time_to_first_token_seconds", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "trtllm_time_per_output_token_seconds", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "trtllm_e2e_request_latency_seconds", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "trtllm_request_queue_time_seconds", Measure: table.MeasureQueueTime, Instrument: table.Histogram},
			{Source: "trtllm_request_prefill_time_seconds", Measure: table.MeasurePrefillTime, Instrument: table.Histogram},
			{Source: "trtllm_request_decode_time_seconds", Measure: table.MeasureDecodeTime, Instrument: table.Histogram},
			{Source: "trtllm_request_success", Measure: table.MeasureRequests, Instrument: table.Counter},
			{Source: "trtllm_num_requests_completed", Measure: table.MeasureRequests, Instrument: table.Counter, Repeats: []string{"trtllm_request_success"}},
			{Source: "trtllm_num_requests_running", Measure: table.MeasureRequestsRunning, Instrument: table.Gauge},
			{Source: "trtllm_num_requests_waiting", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge},
			{Source: "trtllm_kv_cache_utilization", Measure: table.MeasureKVCacheUtilization, Instrument: table.Gauge},
		},
	}
}
