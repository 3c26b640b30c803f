package mlattr

// logfire is the vocabulary of Pydantic's Logfire. It marks the spans of any
// instrumentation in its process, so that its keys say nothing about who made a
// span. The span of a streamed request ends when the stream begins; a second one
// without a duration, which it calls a log, has the tokens.
func logfire() Table {
	return Table{
		Name:        "logfire",
		Title:       "Pydantic Logfire",
		Page:        "https://logfire.pydantic.dev/docs/integrations/llms/openai/",
		Scopes:      []string{"logfire"},
		KeyPrefixes: []string{"logfire."},
		Span: []Alias{
			// A pending span announces one that has begun.
			{Source: "logfire.span_type", Canonical: RequestCounted, Words: map[string]string{"log": wordFalse, "pending_span": wordFalse}},
			// It begins when the answer's headers arrive.
			{Source: "duration", Canonical: DecodeTime, SpanPrefixes: []string{"streaming response from "}},
		},
	}
}
