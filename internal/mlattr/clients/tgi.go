package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// tgi is the vocabulary of Hugging Face's Text Generation Inference. Its times
// are text as Rust prints a duration: "1.23s", "45.6ms", "789µs", "12ns". Its
// keys are everyday words, so they are read only where the service's name
// identifies the client. Its spans have no token counts. They have the time per
// token: the time of the inference, without the queue, divided by the tokens.
// Its inverse is a rate that the client reports.
func tgi() table.Table {
	return table.Table{
		Name:           "tgi",
		Title:          "Text Generation Inference",
		Page:           "https://huggingface.co/docs/text-generation-inference/reference/metrics",
		Services:       []string{"text-generation-inference*", "tgi*"},
		Scopes:         []string{"text_generation_router"},
		MetricPrefixes: []string{"tgi_"},
		Side:           mlattr.SideServer,
		Span: []table.Alias{
			{Source: "total_time", Canonical: mlattr.Latency},
			{Source: "queue_time", Canonical: mlattr.QueueTime},
			{Source: "time_per_token", Canonical: mlattr.TokensPerSecond, Kind: table.KindSeconds, Inverse: true},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "generate", Operation: "generate"},
			{Match: table.Exact, Text: "generate_stream", Operation: "generate_stream"},
			{Match: table.Exact, Text: "compat_generate", Operation: "generate"},
			{Match: table.Exact, Text: "chat_completions", Operation: "chat_completions"},
			{Match: table.Exact, Text: "completions", Operation: "completions"},
		},
		Metrics: []table.Metric{
			{Source: "tgi_request_input_length", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeInput},
			{Source: "tgi_request_generated_tokens", Measure: table.MeasureTokens, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput},
			{Source: "tgi_request_duration", Measure: table.MeasureRequestDuration, Instrument: table.Histogram},
			{Source: "tgi_request_queue_duration", Measure: table.MeasureQueueTime, Instrument: table.Histogram},
			{Source: "tgi_request_mean_time_per_token_duration", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
			{Source: "tgi_request_count", Measure: table.MeasureRequests, Instrument: table.Counter},
		},
	}
}
