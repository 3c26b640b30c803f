package httprequest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// Clients that no table lists record a conversation as JSON, whole or its messages alone,
// in an attribute or an event of any name, or as gen_ai.prompt.0.role and so on. It is
// known by its form.

// listedPrompts begins the keys of messages one by one that several clients share.
const listedPrompts = "gen_ai.prompt"

// maxEvents is how many events are searched.
const maxEvents = 32

// looksRecorded reports whether a text may be the JSON of a conversation.
func looksRecorded(v pcommon.Value) bool {
	if v.Type() != pcommon.ValueTypeStr {
		return false
	}
	text := v.Str()
	return len(text) > 2 && (text[0] == '{' || text[0] == '[') && strings.Contains(text, `"role"`)
}

// hasPrompts reports whether there are messages one by one.
func hasPrompts(attributes pcommon.Map) bool {
	_, ok := attributes.Get(listedPrompts + ".0.role")
	return ok
}

// ofAnswer matches the keys of what a model answered, which is not what was asked.
var ofAnswer = regexp.MustCompile(`output|completion|response|answer|result`)

// eachRecorded calls f with each text that looks like a conversation until it returns
// true, and reports whether it did.
func eachRecorded(span ptrace.Span, f func(text string) bool) bool {
	of := func(attributes pcommon.Map) bool {
		for key, v := range attributes.All() {
			if looksRecorded(v) && !ofAnswer.MatchString(key) && f(v.Str()) {
				return true
			}
		}
		return false
	}
	if of(span.Attributes()) {
		return true
	}
	for i := range min(span.Events().Len(), maxEvents) {
		if of(span.Events().At(i).Attributes()) {
			return true
		}
	}
	return false
}

// isRecorded reports whether a request to a model records a conversation in any form.
func isRecorded(span ptrace.Span) bool {
	return isModelCall(span.Attributes()) &&
		(hasPrompts(span.Attributes()) || eachRecorded(span, func(string) bool { return true }))
}

// requestRecorded makes a request of the first text that is a conversation, or of messages
// one by one.
func requestRecorded(r *reading, span ptrace.Span) (request jsontree.Object) {
	attributes := span.Attributes()
	if hasPrompts(attributes) {
		request = requestOfPrompts(r, span)
	} else {
		eachRecorded(span, func(text string) bool {
			if !r.take(len(text)) {
				return true
			}
			v, lossy, err := jsontree.Decode(strings.Clone(text))
			if err == nil {
				request = conversationOf(v)
			}
			r.lossy = r.lossy || lossy && request != nil
			return request != nil
		})
	}
	if request == nil {
		r.fail(payload.Invalid)
		return nil
	}
	stated := slices.DeleteFunc(parametersOf(attributes), func(m jsontree.Member) bool {
		_, has := request.Lookup(m.Key)
		return has
	})
	return append(stated, request...)
}

// modelOf returns the model that was asked, or that answered.
func modelOf(attributes pcommon.Map) string {
	return strings.Clone(cmp.Or(attr.Text(attributes, mlattr.GenAIRequestModel), attr.Text(attributes, mlattr.GenAIResponseModel)))
}

// conversationOf returns the request that a tree is: a list of messages, or an object
// that has one. Gemini calls them contents.
func conversationOf(v any) jsontree.Object {
	if list, ok := v.(jsontree.Array); ok {
		if messages := plainMessages(list); messages != nil {
			return jsontree.Of("messages", messages)
		}
		return nil
	}
	recorded, _ := v.(jsontree.Object)
	for _, name := range [...]string{"messages", "contents"} {
		messages := plainMessages(recorded.Array(name))
		if messages == nil {
			continue
		}
		if system, has := recorded.Lookup("system"); has && system != nil {
			content, ok := plainContent(jsontree.Of("content", system))
			if !ok {
				return nil
			}
			messages = append(jsontree.Array{jsontree.Of("role", "system", "content", content)}, messages...)
		}
		request := jsontree.Object{}
		for _, m := range known(recorded) {
			// Tools have another form in each client.
			if m.Key != "messages" && m.Key != "tools" && m.Key != "tool_choice" && m.Value != nil {
				request = append(request, m)
			}
		}
		return append(request, jsontree.Member{Key: "messages", Value: messages})
	}
	return nil
}

// plainMessages returns the texts of messages in the form of the API, or nil where one is
// none.
func plainMessages(list jsontree.Array) (messages jsontree.Array) {
	for _, v := range list {
		recorded, _ := v.(jsontree.Object)
		role := roleOf(recorded.Text("role"))
		if role == "" {
			return nil
		}
		content, ok := plainContent(recorded)
		if !ok {
			return nil
		}
		message := jsontree.Of("role", role, "content", content)
		for _, name := range [...]string{"tool_calls", "tool_call_id", "name"} {
			if member, has := recorded.Lookup(name); has && member != nil {
				message = append(message, jsontree.Member{Key: name, Value: member})
			}
		}
		messages = append(messages, message)
	}
	return messages
}

// plainContent returns the text of a message, under the names that clients have for it:
// a text, or a list of parts with texts.
func plainContent(message jsontree.Object) (content any, ok bool) {
	for _, name := range [...]string{"content", "parts", "blocks"} {
		member, has := message.Lookup(name)
		if !has {
			continue
		}
		parts, isList := member.(jsontree.Array)
		if !isList {
			_, isText := member.(string)
			return member, isText || member == nil
		}
		var texts []string
		for _, v := range parts {
			part, _ := v.(jsontree.Object)
			text := cmp.Or(part.Text("text"), part.Text("content"))
			if text == "" {
				return nil, false
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, "\n"), true
	}
	return nil, false
}

// requestOfPrompts makes a request of messages that are attributes one by one.
func requestOfPrompts(r *reading, span ptrace.Span) jsontree.Object {
	all := listed{texts: make(map[string]string), known: make(map[string]bool)}
	for key, v := range span.Attributes().All() {
		if !strings.HasPrefix(key, listedPrompts+".") {
			continue
		}
		if size, _ := mlattr.Size(v, payload.MaxBytes); !r.take(len(key) + size) {
			return nil
		}
		if v.Type() == pcommon.ValueTypeStr {
			all.add(key, strings.Clone(v.Str()))
		} else if strings.HasSuffix(key, ".content") {
			r.fail(payload.Invalid)
		}
	}
	messages := jsontree.Array{}
	for _, at := range all.list(listedPrompts) {
		calls := jsontree.Array{}
		for _, call := range all.list(at + ".tool_calls") {
			calls = append(calls, toolCall(all.texts[call+".id"], all.texts[call+".name"], all.texts[call+".arguments"]))
		}
		message := jsontree.Of("role", roleOf(all.texts[at+".role"]), "content", all.texts[at+".content"])
		messages = append(messages, append(message, jsontree.OfKnown("tool_calls", calls, "tool_call_id", all.texts[at+".tool_call_id"])...))
	}
	if len(messages) < all.len(listedPrompts) || span.DroppedAttributesCount() > 0 {
		r.fail(payload.Truncated)
	}
	return jsontree.Of("messages", messages)
}
