package httprequest

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// chat is a conversation with a model as telemetry has it. All texts are
// JSON.
type chat struct {
	// Messages are gen_ai.input.messages.
	Messages string
	// Instructions are gen_ai.system_instructions.
	Instructions string
	// Tools are gen_ai.tool.definitions.
	Tools string
	// Request is the body of a whole request to the OpenAI API; it takes the
	// place of the others where it is one.
	Request string
	// Listed are messages as the API has them. They take the place of Messages.
	Listed jsontree.Array
	// Cut says that some of Listed were lost on the way.
	Cut bool
	// Size is the number of bytes that Listed came in.
	Size int
	// Parameters are members of the request, by the API's names.
	Parameters jsontree.Object
	// Address is the server that was asked. It is shown, and not used.
	Address string
	// Status is the HTTP status of the answer, or 0.
	Status int64
}

// requestMembers lists what is kept of a recorded request: what decides about
// the answer. Headers, which clients put beside it, are not.
var requestMembers = []string{
	"model", "messages", "tools", "tool_choice", "temperature", "top_p", "max_tokens", "max_completion_tokens", "n",
	"seed", "stop", "presence_penalty", "frequency_penalty", "response_format", "logprobs", "top_logprobs", "reasoning_effort",
}

// chatCall makes a request to the OpenAI API of a conversation. Exactly one of
// its results is set.
func chatCall(c chat) (*payload.Call, payload.Reason) {
	size := len(c.Messages) + len(c.Instructions) + len(c.Tools) + max(len(c.Request), c.Size)
	if size > payload.MaxBytes {
		return nil, payload.TooLarge
	}
	request, lossy, reason := readRequest(c)
	if reason != "" {
		return nil, reason
	}
	return &payload.Call{
		Tree:     jsontree.Of("address", c.Address, "status", jsontree.Int(c.Status), "request", request),
		Function: "chat " + request.Text("model"),
		Lossy:    lossy,
		Weight:   payload.WeightPerByte * size,
	}, ""
}

// readRequest reads the most exact of what there is that is a request.
func readRequest(c chat) (request jsontree.Object, lossy bool, reason payload.Reason) {
	for _, form := range [...]struct {
		there bool
		read  func(chat) (jsontree.Object, bool, payload.Reason)
	}{{c.Request != "", recordedRequest}, {c.Listed != nil, listedRequest}, {c.Messages != "", requestOfMessages}} {
		if !form.there {
			continue
		}
		if request, lossy, reason = form.read(c); reason == "" {
			request, reason = checkedRequest(request)
		}
		if reason == "" {
			return request, lossy, ""
		}
	}
	return nil, false, reason
}

// listedRequest makes a request of messages that were sent one by one.
func listedRequest(c chat) (jsontree.Object, bool, payload.Reason) {
	if c.Cut {
		return nil, false, payload.Truncated
	}
	return append(slices.Clone(c.Parameters), jsontree.Member{Key: "messages", Value: c.Listed}), false, ""
}

// parametersOf returns the members of a request, messages excepted, that a text
// with a JSON object has. A text that is none has none.
func parametersOf(text string) jsontree.Object {
	v, _, err := jsontree.Decode(text)
	recorded, ok := v.(jsontree.Object)
	if err != nil || !ok {
		return nil
	}
	out := jsontree.Object{}
	for _, m := range recorded {
		if slices.Contains(requestMembers, m.Key) && m.Key != "messages" && m.Value != nil {
			out = append(out, m)
		}
	}
	return out
}

func recordedRequest(c chat) (jsontree.Object, bool, payload.Reason) {
	v, lossy, err := jsontree.Decode(c.Request)
	if err != nil {
		return nil, false, payload.ReasonOf(err)
	}
	recorded, ok := v.(jsontree.Object)
	if !ok {
		return nil, false, payload.Invalid
	}
	request := jsontree.Object{}
	for _, m := range recorded {
		if slices.Contains(requestMembers, m.Key) {
			request = append(request, m)
		}
	}
	return request, lossy, ""
}

func requestOfMessages(c chat) (request jsontree.Object, lossy bool, reason payload.Reason) {
	messages := jsontree.Array{}
	if c.Instructions != "" {
		parts, l, err := jsontree.Decode(c.Instructions)
		if err != nil {
			return nil, false, payload.ReasonOf(err)
		}
		lossy = lossy || l
		message, reason := messagesOf(jsontree.Of("role", "system", "parts", parts))
		if reason != "" {
			return nil, false, reason
		}
		messages = append(messages, message...)
	}
	v, l, err := jsontree.Decode(c.Messages)
	if err != nil {
		return nil, false, payload.ReasonOf(err)
	}
	lossy = lossy || l
	recorded, ok := v.(jsontree.Array)
	if !ok || len(recorded) == 0 {
		return nil, false, payload.Invalid
	}
	for _, m := range recorded {
		o, ok := m.(jsontree.Object)
		if !ok {
			return nil, false, payload.Invalid
		}
		converted, reason := messagesOf(o)
		if reason != "" {
			return nil, false, reason
		}
		messages = append(messages, converted...)
	}
	request = append(slices.Clone(c.Parameters), jsontree.Member{Key: "messages", Value: messages})
	if c.Tools != "" {
		v, l, err := jsontree.Decode(c.Tools)
		if err != nil {
			return nil, false, payload.ReasonOf(err)
		}
		tools, ok := v.(jsontree.Array)
		if !ok {
			return nil, false, payload.Invalid
		}
		lossy = lossy || l
		request = append(request, jsontree.Member{Key: "tools", Value: toolsOf(tools)})
	}
	return request, lossy, ""
}

// messagesOf converts a message of the semantic conventions: its text becomes
// the content, and each answer of a tool a message of its own.
func messagesOf(m jsontree.Object) (out jsontree.Array, reason payload.Reason) {
	role := roleOf(m.Text("role"))
	if _, ok := m.Lookup("content"); ok {
		m.Set("role", role)
		return jsontree.Array{m}, "" // as the API has it
	}
	parts := m.Array("parts")
	if parts == nil || role == "" {
		return nil, payload.Invalid
	}
	var texts []string
	calls := jsontree.Array{}
	for _, p := range parts {
		part, ok := p.(jsontree.Object)
		if !ok {
			return nil, payload.Invalid
		}
		switch part.Text("type") {
		case "text":
			texts = append(texts, part.Text("content"))
		case "reasoning": // models write it, and do not read it
		case "tool_call":
			arguments, _ := part.Lookup("arguments")
			calls = append(calls, jsontree.Of("id", part.Text("id"), "type", "function",
				"function", jsontree.Of("name", part.Text("name"), "arguments", asText(arguments))))
		case "tool_call_response":
			answer, ok := part.Lookup("response")
			if !ok {
				answer, _ = part.Lookup("result")
			}
			out = append(out, jsontree.Of("role", "tool", "tool_call_id", part.Text("id"), "content", asText(answer)))
		default:
			return nil, payload.Unsupported
		}
	}
	if len(texts) > 0 || len(calls) > 0 || len(out) == 0 {
		message := jsontree.Of("role", role, "content", strings.Join(texts, "\n"))
		if len(calls) > 0 {
			message = append(message, jsontree.Member{Key: "tool_calls", Value: calls})
		}
		out = append(jsontree.Array{message}, out...)
	}
	return out, ""
}

// toolsOf puts each definition into the envelope of the API, where it is in none.
func toolsOf(tools jsontree.Array) jsontree.Array {
	out := make(jsontree.Array, 0, len(tools))
	for _, t := range tools {
		tool, ok := t.(jsontree.Object)
		if !ok {
			continue
		}
		if _, wrapped := tool.Lookup("function"); wrapped {
			out = append(out, tool)
			continue
		}
		function := jsontree.Object{}
		for _, m := range tool {
			if m.Key != "type" {
				function = append(function, m)
			}
		}
		out = append(out, jsontree.Of("type", "function", "function", function))
	}
	return out
}

func asText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return "{}"
	}
	return string(jsontree.Encode(v))
}
