package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// liteLLM is the vocabulary of LiteLLM, as far as it differs from the
// conventions. Its first version writes its attributes on the span of the caller,
// unless USE_OTEL_LITELLM_REQUEST_SPAN is set, and the identity of its proxy's
// callers as empty text where it has none. Its second version writes that identity
// on every span of the proxy, so that it is no mark of a request.
func liteLLM() table.Table {
	return table.Table{
		Name:        "litellm",
		Title:       "LiteLLM",
		Page:        "https://docs.litellm.ai/docs/observability/opentelemetry_integration",
		Packages:    []string{"litellm"},
		Gateways:    []string{"litellm"},
		Services:    []string{"litellm"},
		Scopes:      []string{"litellm"},
		KeyPrefixes: []string{"litellm."},
		Span: []table.Alias{
			{Source: "litellm.cost.total", Canonical: mlattr.UsageCost},
			{Source: "litellm.cost.input", Canonical: mlattr.UsageInputCost},
			{Source: "litellm.cost.output", Canonical: mlattr.UsageOutputCost},
			{Source: "litellm.request.streaming", Canonical: mlattr.GenAIStream},
			{Source: "litellm.end_user.id", Canonical: mlattr.User, Kind: table.KindSecret},
			{Source: "metadata.user_api_key_end_user_id", Canonical: mlattr.User, Kind: table.KindSecret},
		},
		Metrics: []table.Metric{
			{Source: "gen_ai.client.response.time_to_first_token", Measure: table.MeasureTimeToFirstToken, Instrument: table.Histogram},
			{Source: "gen_ai.client.response.time_per_output_token", Measure: table.MeasureTimePerOutputToken, Instrument: table.Histogram},
		},
	}
}
