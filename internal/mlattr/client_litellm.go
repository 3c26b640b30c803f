package mlattr

// liteLLM is the vocabulary of LiteLLM, as far as it differs from the
// conventions. Its first version writes its attributes on the span of the caller,
// unless USE_OTEL_LITELLM_REQUEST_SPAN is set, and the identity of its proxy's
// callers as empty text where it has none. Its second version writes that identity
// on every span of the proxy, so that it is no mark of a request.
func liteLLM() Table {
	return Table{
		Name:        "litellm",
		Title:       "LiteLLM",
		Page:        "https://docs.litellm.ai/docs/observability/opentelemetry_integration",
		Packages:    []string{"litellm"},
		Services:    []string{"litellm"},
		Scopes:      []string{"litellm"},
		KeyPrefixes: []string{"litellm."},
		Span: []Alias{
			{Source: "litellm.cost.total", Canonical: UsageCost},
			{Source: "litellm.cost.input", Canonical: UsageInputCost},
			{Source: "litellm.cost.output", Canonical: UsageOutputCost},
			{Source: "litellm.request.streaming", Canonical: GenAIStream},
			{Source: "litellm.end_user.id", Canonical: User, Kind: KindSecret},
			{Source: "metadata.user_api_key_end_user_id", Canonical: User, Kind: KindSecret},
		},
		Metrics: []Metric{
			{Source: "gen_ai.client.response.time_to_first_token", Measure: MeasureTimeToFirstToken, Instrument: Histogram},
			{Source: "gen_ai.client.response.time_per_output_token", Measure: MeasureTimePerOutputToken, Instrument: Histogram},
		},
	}
}
