package genaichat

import (
	"cmp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// The members of messages and of their parts that the chat completions API
// knows. A server refuses others.
var (
	messageMembers = []string{"role", "content", "name", "tool_calls", "tool_call_id", "refusal"}
	textParts      = []string{"text", "refusal"} // the text is under that key
	mediaParts     = []string{"image_url", "input_audio", "file", "image", "audio"}
)

// roles maps what clients call the author of a message to the API's names.
var roles = map[string]string{
	"human": "user", "ai": "assistant", "model": "assistant",
	"tool-call": "assistant", "tool-response": "user", // smolagents
}

// roleOf returns what the API calls the author of a message.
func roleOf(role string) string { return cmp.Or(roles[role], role) }

// checkedRequest returns a request as the chat completions API takes it, or
// the reason why it is none. What the API does not know of a message is left
// out.
func checkedRequest(request jsontree.Object) (jsontree.Object, failure.Reason) {
	messages := request.Array("messages")
	if len(messages) == 0 {
		return nil, failure.Invalid
	}
	out := jsontree.Object{}
	for _, m := range request {
		if m.Value == nil || !slices.Contains(requestMembers, m.Key) {
			continue // as if it were not there
		}
		checked, reason := m.Value, failure.Reason("")
		switch m.Key {
		case "messages":
			checked, reason = eachOf(messages, checkedMessage)
		case "tools":
			tools, wrong := eachOf(m.Value, checkedTool)
			if checked, reason = tools, wrong; wrong == "" && len(tools) == 0 {
				continue
			}
		case "model":
			if _, ok := m.Value.(string); !ok {
				reason = failure.Invalid
			}
		}
		if reason != "" {
			return nil, reason
		}
		out = append(out, jsontree.Member{Key: m.Key, Value: checked})
	}
	return out, ""
}

// eachOf checks each object of a list.
func eachOf(v any, check func(jsontree.Object) (jsontree.Object, failure.Reason)) (jsontree.Array, failure.Reason) {
	list, ok := v.(jsontree.Array)
	if !ok {
		return nil, failure.Invalid
	}
	out := make(jsontree.Array, 0, len(list))
	for _, e := range list {
		o, ok := e.(jsontree.Object)
		if !ok {
			return nil, failure.Invalid
		}
		checked, reason := check(o)
		if reason != "" {
			return nil, reason
		}
		out = append(out, checked)
	}
	return out, ""
}

func checkedMessage(m jsontree.Object) (jsontree.Object, failure.Reason) {
	out := slices.DeleteFunc(slices.Clone(m), func(member jsontree.Member) bool {
		return !slices.Contains(messageMembers, member.Key) || member.Value == nil && member.Key != "content"
	})
	role := out.Text("role")
	calls, hasCalls := out.Lookup("tool_calls")
	content, _ := out.Lookup("content")
	switch role {
	case "system", "developer", "user":
	case "assistant":
		if hasCalls {
			checked, reason := eachOf(calls, checkedToolCall)
			if reason != "" || len(checked) == 0 {
				return nil, failure.Invalid
			}
			out.Set("tool_calls", checked)
		}
		_, refused := out.Lookup("refusal")
		if content == nil && (hasCalls || refused) {
			return out, ""
		}
	case "tool":
		if out.Text("tool_call_id") == "" {
			return nil, failure.Invalid
		}
	default:
		return nil, failure.Invalid
	}
	if hasCalls && role != "assistant" {
		return nil, failure.Invalid
	}
	checked, reason := checkedContent(content)
	out.Set("content", checked)
	return out, reason
}

// checkedContent checks a text, or a list of parts that are texts.
func checkedContent(content any) (any, failure.Reason) {
	if text, ok := content.(string); ok {
		return text, ""
	}
	parts, reason := eachOf(content, func(part jsontree.Object) (jsontree.Object, failure.Reason) {
		kind := part.Text("type")
		if slices.Contains(mediaParts, kind) {
			return nil, failure.Unsupported
		}
		text, _ := part.Lookup(kind)
		if _, isText := text.(string); !isText || !slices.Contains(textParts, kind) {
			return nil, failure.Invalid
		}
		return jsontree.Of("type", kind, kind, text), ""
	})
	if reason == "" && len(parts) == 0 {
		return nil, failure.Invalid
	}
	return parts, reason
}

func checkedToolCall(call jsontree.Object) (jsontree.Object, failure.Reason) {
	function := call.Object("function")
	arguments, _ := function.Lookup("arguments")
	if _, isText := arguments.(string); !isText || call.Text("id") == "" || function.Text("name") == "" {
		return nil, failure.Invalid
	}
	return jsontree.Of("id", call.Text("id"), "type", "function",
		"function", jsontree.Of("name", function.Text("name"), "arguments", arguments)), ""
}

func checkedTool(tool jsontree.Object) (jsontree.Object, failure.Reason) {
	function := tool.Object("function")
	if tool.Text("type") != "function" || function.Text("name") == "" {
		return nil, failure.Invalid
	}
	known := slices.DeleteFunc(slices.Clone(function), func(m jsontree.Member) bool {
		known := false
		switch m.Key {
		case "name", "description":
			_, known = m.Value.(string)
		case "parameters":
			_, known = m.Value.(jsontree.Object)
		case "strict":
			_, known = m.Value.(bool)
		}
		return !known
	})
	return jsontree.Of("type", "function", "function", known), ""
}
