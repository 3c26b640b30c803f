package genaichat

import (
	"cmp"
	"encoding/json"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Some clients write what they ask as log records of the request's span: a message each,
// as the event gen_ai.user.message, or all of them in the attributes of one.

// Recorded returns what a log record has of the request of its span. Of a message the key
// is its role.
func Recorded(record plog.LogRecord) (parts []failure.Recorded) {
	attributes := record.Attributes()
	name := cmp.Or(record.EventName(), mlattr.FirstText(attributes, "event.name"))
	event, known := strings.CutPrefix(name, "gen_ai.")
	if !known {
		return nil
	}
	if role, ok := strings.CutSuffix(event, ".message"); ok {
		text, _ := mlattr.Text(record.Body(), failure.MaxCallBytes+1)
		return []failure.Recorded{{Key: strings.Clone(role), Text: strings.Clone(text)}}
	}
	if hasMessages(attributes) {
		for _, key := range [...]string{attrInputMessages, attrSystemInstructions, attrToolDefinitions} {
			if text := jsonText(attributes, key); text != "" {
				parts = append(parts, failure.Recorded{Key: key, Text: text})
			}
		}
	}
	return parts
}

// fromFailure makes a request of what log records have of it.
func fromFailure(f *failure.Failure) (*failure.Call, failure.Reason, bool) {
	if len(f.Recorded) == 0 {
		return nil, "", false
	}
	span := ptrace.NewSpan()
	var stated map[string]any
	err := json.Unmarshal(jsontree.Encode(f.Span.Attributes), &stated)
	if err != nil || span.Attributes().FromRaw(stated) != nil { //nolint:forbidigo // the copy is bounded
		return nil, failure.Invalid, true
	}
	var messages jsontree.Array
	for _, part := range f.Recorded {
		if strings.HasPrefix(part.Key, "gen_ai.") {
			span.Attributes().PutStr(part.Key, part.Text)
			continue
		}
		v, _, _ := jsontree.Decode(part.Text)
		body, _ := v.(jsontree.Object)
		if _, has := body.Lookup("content"); !has && body.Array("tool_calls") == nil {
			return nil, "", false // the client leaves content out
		}
		message := messageOf(body, part.Key)
		if message.Text("role") == "tool" {
			message = append(message, jsontree.Member{Key: "tool_call_id", Value: body.Text("id")})
		}
		messages = append(messages, message)
	}
	if messages != nil {
		span.Attributes().PutStr(attrInputMessages, string(jsontree.Encode(messages)))
	}
	call, reason := chatCall(span)
	return call, reason, true
}
