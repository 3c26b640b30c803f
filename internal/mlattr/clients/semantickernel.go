package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// semanticKernel is the vocabulary of Semantic Kernel, as far as it differs from
// the conventions. Its metrics of tokens are those of its connectors for .NET,
// taken from its source; their total repeats the two.
func semanticKernel() table.Table {
	return table.Table{
		Name:           "semantic_kernel",
		Title:          "Semantic Kernel",
		Page:           "https://learn.microsoft.com/en-us/semantic-kernel/concepts/enterprise-readiness/observability/",
		Packages:       []string{"semantic_kernel"},
		Scopes:         []string{"semantic_kernel."},
		MetricPrefixes: []string{"semantic_kernel."},
		Metrics: []table.Metric{
			{Source: "semantic_kernel.connectors.openai.tokens.prompt", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeInput},
			{Source: "semantic_kernel.connectors.openai.tokens.completion", Measure: table.MeasureTokens, Instrument: table.Counter, TokenType: mlattr.TokenTypeOutput},
		},
	}
}
