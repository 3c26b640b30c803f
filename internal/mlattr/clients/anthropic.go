package clients

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"

// anthropicSDK is the vocabulary of Anthropic's SDK for Python, which has spans
// of its own since version 2, as far as it differs from the conventions.
func anthropicSDK() table.Table {
	return table.Table{
		Name:        "anthropic_sdk",
		Title:       "Anthropic SDK",
		Page:        "https://github.com/anthropics/anthropic-sdk-python",
		Scopes:      []string{"com.anthropic.sdk."},
		KeyPrefixes: []string{"anthropic."},
	}
}
