package genaichat

import (
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Clients that no table lists record a conversation as JSON, whole or its messages alone,
// in an attribute or an event of any name, or as gen_ai.prompt.0.role and so on. It is
// known by its form.

// maxEvents is how many events are searched.
const maxEvents = 32

// looksRecorded reports whether a text may be the JSON of a conversation.
func looksRecorded(v pcommon.Value) bool {
	if v.Type() != pcommon.ValueTypeStr {
		return false
	}
	text := v.Str()
	return len(text) > 2 && (text[0] == '{' || text[0] == '[') && (strings.Contains(text, `"role"`) || strings.Contains(text, `"contents"`))
}

// ofAnswer matches the keys of what a model answered, which is not what was asked.
var ofAnswer = regexp.MustCompile(`output|completion|response|answer|result`)

// eachRecorded calls f with each text that looks like a conversation until it returns
// true, and reports whether it did.
func eachRecorded(span ptrace.Span, f func(text string) bool) bool {
	l := listsOf(span.Attributes())
	of := func(attributes pcommon.Map) bool {
		for key, v := range attributes.All() {
			if looksRecorded(v) && !l.has(key) && !ofAnswer.MatchString(key) && f(v.Str()) {
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

// recorded makes a request of the first text that is a conversation, or with whole of the
// first that is a request.
func recorded(whole bool) form {
	return func(r *reading, span ptrace.Span) (request jsontree.Object) {
		eachRecorded(span, func(text string) bool {
			if !r.take(len(text)) {
				return true
			}
			v, lossy, _ := jsontree.Decode(strings.Clone(text)) // no tree where it is no JSON
			if o, _ := v.(jsontree.Object); !whole || len(o.Array("messages")) > 0 {
				request = conversationOf(v)
			}
			r.lossy = r.lossy || lossy && request != nil
			return request != nil
		})
		return request
	}
}

// modelOf returns the model that was asked, or that answered. No ml_enrich may have read the
// span.
func modelOf(attributes pcommon.Map) string {
	model := mlattr.FirstText(attributes, mlattr.GenAIRequestModel, mlattr.GenAIResponseModel)
	for key, v := range attributes.All() {
		if model == "" && strings.HasSuffix(key, ".model_name") && v.Type() == pcommon.ValueTypeStr {
			model = v.Str()
		}
	}
	return strings.Clone(model)
}

// conversationOf returns the request that a tree is: a list of messages, or an object
// that has one. Gemini calls them contents, which may be a text. It returns nil where a
// message is none.
func conversationOf(v any) jsontree.Object {
	recorded, _ := v.(jsontree.Object)
	list, isList := v.(jsontree.Array)
	if !isList {
		list = append(recorded.Array("messages"), recorded.Array("contents")...)
	}
	if text := recorded.Text("contents"); text != "" {
		list = append(list, jsontree.Of("role", "user", "content", text))
	}
	if system, has := recorded.Lookup("system"); has && system != nil {
		list = append(jsontree.Array{jsontree.Of("role", "system", "content", system)}, list...)
	}
	messages, reason := messagesIn(list)
	if reason != "" {
		return nil
	}
	_, foreign := eachOf(recorded.Array("tools"), checkedTool)
	request := slices.DeleteFunc(recorded, func(m jsontree.Member) bool {
		// Tools have another form in some clients.
		return m.Key == "messages" || foreign != "" && (m.Key == "tools" || m.Key == "tool_choice")
	})
	return append(request, jsontree.Member{Key: "messages", Value: messages})
}
