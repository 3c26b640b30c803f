package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// logfire is the vocabulary of Pydantic's Logfire. It marks the spans of any
// instrumentation in its process, so that its keys say nothing about who made a
// span. The span of a streamed request ends when the stream begins; a second one
// without a duration, which it calls a log, has the tokens.
func logfire() table.Table {
	return table.Table{
		Name:        "logfire",
		Title:       "Pydantic Logfire",
		Page:        "https://logfire.pydantic.dev/docs/integrations/llms/openai/",
		Scopes:      []string{"logfire"},
		KeyPrefixes: []string{"logfire."},
		Span: []table.Alias{
			// A pending span announces one that has begun.
			{Source: "logfire.span_type", Canonical: mlattr.RequestCounted, Words: map[string]string{"log": table.WordFalse, "pending_span": table.WordFalse}},
			// It begins when the answer's headers arrive.
			{Source: "duration", Canonical: mlattr.DecodeTime, SpanPrefixes: []string{"streaming response from "}},
		},
	}
}
