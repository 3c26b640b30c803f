package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// llamaCpp is the vocabulary of the server of llama.cpp, started with --metrics.
// The cached tokens are not part of llamacpp:prompt_tokens, so that both counters
// together are the input. No metric has labels.
func llamaCpp() table.Table {
	return table.Table{
		Name:           "llama_cpp",
		Packages:       []string{"llama_cpp"},
		Title:          "llama.cpp",
		Page:           "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
		Services:       []string{"llama.cpp*", "llama-cpp*", "llamacpp*"},
		MetricPrefixes: []string{"llamacpp:", "llamacpp_"},
		Side:           mlattr.SideServer,
		Metrics: []table.Metric{
			{Source: "llamacpp:prompt_tokens", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "llamacpp:prompt_tokens_cached", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "llamacpp:tokens_predicted", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
			{Source: "llamacpp:prompt_tokens_seconds", Measure: table.MeasureTokenThroughput, Instrument: table.Gauge, TokenType: mlattr.TokenTypeInput},
			{Source: "llamacpp:predicted_tokens_seconds", Measure: table.MeasureTokenThroughput, Instrument: table.Gauge, TokenType: mlattr.TokenTypeOutput},
			{Source: "llamacpp:requests_processing", Measure: table.MeasureRequestsRunning, Instrument: table.Gauge},
			{Source: "llamacpp:requests_deferred", Measure: table.MeasureRequestsWaiting, Instrument: table.Gauge},
		},
	}
}
