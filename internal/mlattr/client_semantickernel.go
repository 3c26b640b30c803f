package mlattr

// semanticKernel is the vocabulary of Semantic Kernel, as far as it differs from
// the conventions. Its metrics of tokens are those of its connectors for .NET,
// taken from its source; their total repeats the two.
func semanticKernel() Table {
	return Table{
		Name:           "semantic_kernel",
		Title:          "Semantic Kernel",
		Page:           "https://learn.microsoft.com/en-us/semantic-kernel/concepts/enterprise-readiness/observability/",
		Packages:       []string{"semantic_kernel"},
		Scopes:         []string{"semantic_kernel."},
		MetricPrefixes: []string{"semantic_kernel."},
		Metrics: []Metric{
			{Source: "semantic_kernel.connectors.openai.tokens.prompt", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeInput},
			{Source: "semantic_kernel.connectors.openai.tokens.completion", Measure: MeasureTokens, Instrument: Counter, TokenType: TokenTypeOutput},
		},
	}
}
