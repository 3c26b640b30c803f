package genaichat

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/python"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// reading reads the texts of a request, and notes the first reason why there is none.
type reading struct {
	size   int
	lossy  bool
	reason failure.Reason
}

func (r *reading) fail(reason failure.Reason) { r.reason = cmp.Or(r.reason, reason) }

// take notes bytes that a request came in.
func (r *reading) take(size int) (fits bool) {
	if r.size += size; r.size > failure.MaxCallBytes {
		r.fail(failure.TooLarge)
	}
	return r.size <= failure.MaxCallBytes
}

// decode reads a text of JSON.
func (r *reading) decode(text string) any {
	if !r.take(len(text)) {
		return nil
	}
	v, lossy, err := jsontree.Decode(text)
	if err != nil {
		r.fail(failure.ReasonOf(err))
	}
	r.lossy = r.lossy || lossy
	return v
}

// requestMembers lists what is kept of a recorded request: what decides about
// the answer. Headers, which clients put beside it, are not.
var requestMembers = []string{
	"model", "messages", "tools", "tool_choice", "temperature", "top_p", "max_tokens", "max_completion_tokens", "n",
	"seed", "stop", "presence_penalty", "frequency_penalty", "response_format", "logprobs", "top_logprobs", "reasoning_effort",
}

// form reads a request as some clients record it, or returns nil where there is none.
type form func(*reading, ptrace.Span) jsontree.Object

// chatCall makes a request to the OpenAI API of a conversation: of the most exact
// recording of it that is one. Exactly one of its results is set.
func chatCall(span ptrace.Span) (*failure.Call, failure.Reason) {
	attributes := span.Attributes()
	forms := []form{recorded(true), requestListed, recorded(false)}
	if hasMessages(attributes) {
		forms = []form{requestOfMessages}
	}
	reason := failure.Invalid
	status := int64(0) // of the answer, if there was one
	if v, ok := attributes.Get(attrHTTPStatus); ok {
		status, _ = mlattr.ReadInt(v)
	}
	for _, read := range forms {
		var r reading
		request := read(&r, span)
		if request == nil && r.reason == "" {
			continue // there is none of this form
		}
		stated := slices.DeleteFunc(parametersOf(attributes), func(m jsontree.Member) bool {
			_, has := request.Lookup(m.Key)
			return has
		})
		if request = append(stated, request...); r.reason == "" {
			request, r.reason = checkedRequest(request)
		}
		if model := modelOf(attributes); r.reason == "" && model != "" && request.Text("model") == "" {
			request = append(jsontree.Object{{Key: "model", Value: model}}, request...)
		}
		if reason = r.reason; reason == "" {
			return &failure.Call{
				Tree:     jsontree.Of("address", addressOf(attributes), "status", jsontree.Int(status), "request", request),
				Function: "chat " + request.Text("model"),
				Lossy:    r.lossy,
				Weight:   failure.WeightPerByte * r.size,
			}, ""
		}
	}
	return nil, reason
}

// requestOfMessages makes a request of what the semantic conventions record.
func requestOfMessages(r *reading, span ptrace.Span) jsontree.Object {
	attributes := span.Attributes()
	recorded, _ := r.decode(jsonText(attributes, attrInputMessages)).(jsontree.Array)
	if len(recorded) == 0 {
		r.fail(failure.Invalid)
	}
	if instructions := jsonText(attributes, attrSystemInstructions); instructions != "" {
		recorded = append(jsontree.Array{jsontree.Of("role", "system", "parts", r.decode(instructions))}, recorded...)
	}
	messages, reason := messagesIn(recorded)
	r.fail(reason)
	request := jsontree.Of("messages", messages)
	if text := jsonText(attributes, attrToolDefinitions); text != "" {
		tools, ok := r.decode(text).(jsontree.Array)
		if !ok {
			r.fail(failure.Invalid)
		}
		request = append(request, jsontree.Member{Key: "tools", Value: toolsOf(tools)})
	}
	return request
}

// parametersOf returns the members of a request that the semantic conventions have
// attributes for.
func parametersOf(attributes pcommon.Map) (request jsontree.Object) {
	for _, p := range requestParameters {
		if v, ok := attributes.Get(p.attribute); ok {
			request = append(request, jsontree.Member{Key: p.name, Value: snapshot.New().Value(v, snapshot.MaxValue, 0)})
		}
	}
	return request
}

// messagesIn converts a list of messages.
func messagesIn(recorded jsontree.Array) (messages jsontree.Array, reason failure.Reason) {
	for _, v := range recorded {
		m, _ := v.(jsontree.Object)
		converted, wrong := messagesOf(m)
		reason = cmp.Or(reason, wrong)
		messages = append(messages, converted...)
	}
	if len(messages) == 0 {
		reason = cmp.Or(reason, failure.Invalid)
	}
	return messages, reason
}

// messagesOf converts a message of the semantic conventions or of another client: its
// text becomes the content, and each answer of a tool a message of its own.
func messagesOf(m jsontree.Object) (out jsontree.Array, reason failure.Reason) {
	role := roleOf(m.Text("role"))
	parts := slices.Concat(m.Array("parts"), m.Array("blocks"))
	if _, ok := m.Lookup("content"); ok && role != "" {
		if parts = m.Array("content"); !slices.ContainsFunc(parts, isUntyped) {
			m.Set("role", role)
			return jsontree.Array{m}, "" // as the API has it
		}
	}
	if parts == nil || role == "" {
		return nil, failure.Invalid
	}
	var texts []string
	calls := jsontree.Array{}
	for _, p := range parts {
		part, ok := p.(jsontree.Object)
		if !ok {
			return nil, failure.Invalid
		}
		switch part.Text("type") {
		case "text", "":
			text := cmp.Or(part.Text("content"), part.Text("text"))
			if text == "" && isUntyped(part) {
				return nil, failure.Unsupported
			}
			texts = append(texts, text)
		case "reasoning": // models write it, and do not read it
		case "tool_call":
			arguments, _ := part.Lookup("arguments")
			calls = append(calls, toolCall(part.Text("id"), part.Text("name"), asText(arguments)))
		case "tool_call_response":
			answer, ok := part.Lookup("response")
			if !ok {
				answer, _ = part.Lookup("result")
			}
			out = append(out, jsontree.Of("role", "tool", "tool_call_id", part.Text("id"), "content", asText(answer)))
		default:
			return nil, failure.Unsupported
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

func isUntyped(part any) bool {
	o, _ := part.(jsontree.Object)
	return o.Text("type") == ""
}

// toolsOf puts each definition into the envelope of the API, where it is in none.
func toolsOf(tools jsontree.Array) jsontree.Array {
	out := make(jsontree.Array, 0, len(tools))
	for _, t := range tools {
		tool, ok := t.(jsontree.Object)
		if !ok {
			continue
		}
		if _, wrapped := tool.Lookup("function"); !wrapped {
			tool = jsontree.Of("type", "function", "function", tool.Without("type"))
		}
		out = append(out, tool)
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

// Attributes of calls to models.
const (
	attrInputMessages      = "gen_ai.input.messages"
	attrSystemInstructions = "gen_ai.system_instructions"
	attrToolDefinitions    = "gen_ai.tool.definitions"
	attrServerAddress      = "server.address"
	attrServerPort         = "server.port"
	attrHTTPStatus         = "http.response.status_code"
)

// requestParameters maps the attributes of a request to the names that the
// OpenAI API has for them.
var requestParameters = [...]struct{ attribute, name string }{
	{"gen_ai.request.model", "model"},
	{"gen_ai.request.temperature", "temperature"},
	{"gen_ai.request.top_p", "top_p"},
	{"gen_ai.request.max_tokens", "max_tokens"},
	{"gen_ai.request.seed", "seed"},
	{"gen_ai.request.choice.count", "n"},
	{"gen_ai.request.stop_sequences", "stop"},
	{"gen_ai.request.frequency_penalty", "frequency_penalty"},
	{"gen_ai.request.presence_penalty", "presence_penalty"},
}

// addressOf returns the server that was asked. It is shown, and not used.
func addressOf(attributes pcommon.Map) string {
	if address := snapshot.Text(mlattr.FirstText(attributes, vocabulary.AddressKeys()...), snapshot.MaxValue); address != "" {
		return address
	}
	address := snapshot.Text(mlattr.FirstText(attributes, attrServerAddress), snapshot.MaxValue)
	if port, ok := attributes.Get(attrServerPort); ok && port.Type() == pcommon.ValueTypeInt && address != "" {
		return net.JoinHostPort(address, strconv.FormatInt(port.Int(), 10))
	}
	return address
}

func hasConversation(span ptrace.Span) bool {
	attributes := span.Attributes()
	return hasMessages(attributes) || attr.IsModelCall(attributes) &&
		(listsOf(attributes).messages != "" || eachRecorded(span, func(string) bool { return true }))
}

// hasMessages reports whether there are messages: structured, or as JSON.
func hasMessages(attributes pcommon.Map) bool {
	v, ok := attributes.Get(attrInputMessages)
	return ok && (v.Type() == pcommon.ValueTypeSlice || v.Str() != "")
}

// jsonText returns a copy of an attribute as JSON, which must not share
// memory with the batch. One that is too large is cut, and still too large.
func jsonText(attributes pcommon.Map, key string) string {
	v, ok := attributes.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeSlice && v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	text, _ := mlattr.Text(v, failure.MaxCallBytes+1)
	return strings.Clone(text)
}

// chatHead writes the model and the messages.
func chatHead(h *kind.Head, spec jsontree.Object) {
	request := spec.Object("payload").Object("request")
	h.Add("chat", cmp.Or(request.Text("model"), "(no model was recorded)"))
	var texts []string
	for _, v := range request.Array("messages") {
		m, _ := v.(jsontree.Object)
		content, _ := m.Lookup("content")
		text, ok := content.(string)
		if !ok && content != nil {
			text = python.Text(content)
		}
		texts = append(texts, m.Text("role")+": "+text)
	}
	h.List("messages", texts, 10)
}
