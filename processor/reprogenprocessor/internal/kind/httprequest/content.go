package httprequest

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// withoutContent keeps of a request its method, its numbers, and of a conversation the
// model and the roles.
var withoutContent = redact.Members(map[string]redact.Rule{
	"method": redact.OneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
	"request": redact.Members(map[string]redact.Rule{
		"model":    redact.Texts(func(text string) bool { return redact.Word(text) == text }),
		"messages": redact.Each(messageWithoutContent),
	}, redact.Settings),
}, redact.Settings)

var messageWithoutContent = redact.Members(map[string]redact.Rule{
	"role":         redact.OneOf("system", "developer", "user", "assistant", "tool", "function"),
	"content":      redact.All,
	"tool_calls":   redact.All,
	"tool_call_id": redact.All,
	"name":         redact.All,
}, nil)
