package httprequest

import (
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// methods are the words of HTTP itself.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

// withoutContent returns a request with its method, its numbers, and of a conversation the
// model and the roles, and what was withheld.
func withoutContent(tree jsontree.Object) (jsontree.Object, []redact.Withheld) {
	w := &withholder{}
	out := make(jsontree.Object, len(tree))
	for i, m := range tree {
		at := "payload." + m.Key
		text, _ := m.Value.(string)
		request, isRequest := m.Value.(jsontree.Object)
		switch {
		case m.Key == "method" && methods[text]:
		case m.Key == "request" && isRequest:
			m.Value = w.request(at, request)
		default:
			m.Value = w.NumberOrMark(at, m.Key, m.Value)
		}
		out[i] = m
	}
	return out, w.Withheld
}

type withholder struct{ redact.Withholder }

// request keeps a conversation's model, its roles and its numbers.
func (w *withholder) request(at string, request jsontree.Object) jsontree.Object {
	out := make(jsontree.Object, len(request))
	for i, m := range request {
		here := at + "." + m.Key
		value := m.Value
		switch messages, isList := value.(jsontree.Array); {
		case m.Key == "messages" && isList:
			list := make(jsontree.Array, len(messages))
			for j, message := range messages {
				list[j] = w.message(here+"["+strconv.Itoa(j)+"]", message)
			}
			value = list
		case m.Key == "model":
			if text, ok := value.(string); !ok || redact.Word(text) != text {
				value = w.Withhold(here, value)
			}
		default:
			value = w.NumberOrMark(here, m.Key, value)
		}
		out[i] = jsontree.Member{Key: m.Key, Value: value}
	}
	return out
}

func (w *withholder) message(at string, v any) any {
	message, ok := v.(jsontree.Object)
	if !ok {
		return w.Withhold(at, v)
	}
	out := jsontree.Object{}
	for _, m := range message {
		value := m.Value
		switch m.Key {
		case "role":
			switch value {
			case "system", "developer", "user", "assistant", "tool", "function":
			default:
				value = w.Withhold(at+".role", value)
			}
		case "content", "tool_calls", "tool_call_id", "name":
			value = w.Withhold(at+"."+m.Key, value)
		default:
			continue
		}
		out = append(out, jsontree.Member{Key: m.Key, Value: value})
	}
	return out
}
