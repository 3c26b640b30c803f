package clients

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"

// bedrock is the vocabulary of the instrumentation of AWS's SDK for Python, as far as
// it differs from the conventions: Bedrock counts the tokens of caches apart.
func bedrock() table.Table {
	return table.Table{
		Name:   "bedrock",
		Title:  "Amazon Bedrock by botocore",
		Page:   "https://opentelemetry-python-contrib.readthedocs.io/en/latest/instrumentation/botocore/botocore.html",
		Scopes: []string{"opentelemetry.instrumentation.botocore.bedrock-runtime"},
		Traits: []table.Trait{table.CachesApart},
	}
}
