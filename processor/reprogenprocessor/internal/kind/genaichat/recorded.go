package genaichat

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Clients that no table lists record a conversation as JSON, whole or its messages alone,
// in an attribute or an event of any name, or as gen_ai.prompt.0.role and so on. It is
// known by its form.

// prompts are the messages one by one that several clients share.
var prompts = &keys{ListedRequest: table.ListedRequest{Messages: "gen_ai.prompt"}, firstRole: "gen_ai.prompt.0.role"}

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
	return attr.IsModelCall(span.Attributes()) &&
		(prompts.hasList(span.Attributes()) || eachRecorded(span, func(string) bool { return true }))
}

// requestRecorded makes a request of the first text that is a conversation, or of messages
// one by one.
func requestRecorded(r *reading, span ptrace.Span) (request jsontree.Object) {
	attributes := span.Attributes()
	if request = prompts.list(r, span); request == nil && r.reason == "" {
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
		r.fail(failure.Invalid)
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
// that has one. Gemini calls them contents. It returns nil where a message is none.
func conversationOf(v any) jsontree.Object {
	recorded, _ := v.(jsontree.Object)
	list, isList := v.(jsontree.Array)
	if !isList {
		list = append(recorded.Array("messages"), recorded.Array("contents")...)
	}
	if system, has := recorded.Lookup("system"); has && system != nil {
		list = append(jsontree.Array{jsontree.Of("role", "system", "content", system)}, list...)
	}
	messages, reason := messagesIn(list)
	if reason != "" {
		return nil
	}
	request := slices.DeleteFunc(known(recorded), func(m jsontree.Member) bool {
		// Tools have another form in each client.
		return m.Key == "messages" || m.Key == "tools" || m.Key == "tool_choice" || m.Value == nil
	})
	return append(request, jsontree.Member{Key: "messages", Value: messages})
}
