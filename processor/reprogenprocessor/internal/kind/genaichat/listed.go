package genaichat

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// lists are what the keys of a request begin with that some clients write as attributes
// one by one: llm.input_messages.0.message.role, gen_ai.prompt.0.role.
type lists struct{ messages, tools string }

// listsOf finds them by the keys of the first message and of the first tool.
func listsOf(attributes pcommon.Map) (l lists) {
	for key := range attributes.All() {
		if prefix, ok := strings.CutSuffix(key, ".role"); ok && l.messages == "" && !ofAnswer.MatchString(key) {
			if prefix, ok = strings.CutSuffix(strings.TrimSuffix(prefix, ".message"), ".0"); ok {
				l.messages = prefix
			}
		}
		if prefix, ok := strings.CutSuffix(key, ".0.tool.json_schema"); ok {
			l.tools = prefix
		}
	}
	return l
}

// has reports whether an attribute is part of a message or of a tool.
func (l *lists) has(key string) bool {
	return l.messages != "" && strings.HasPrefix(key, l.messages+".") || l.tools != "" && strings.HasPrefix(key, l.tools+".")
}

// list makes a request of messages that are attributes one by one, and of what else
// belongs to it, if there are any.
func requestListed(r *reading, span ptrace.Span) jsontree.Object {
	attributes := span.Attributes()
	l := listsOf(attributes)
	if l.messages == "" {
		return nil
	}
	all := node{}
	for key, v := range attributes.All() {
		place, isMessage := strings.CutPrefix(key, l.messages+".")
		if tool, ok := strings.CutPrefix(key, l.tools+"."); ok && l.tools != "" {
			place = tool
		} else if !isMessage {
			continue
		}
		if size, _ := mlattr.Size(v, failure.MaxCallBytes); !r.take(len(key) + size) {
			return nil
		}
		if v.Type() == pcommon.ValueTypeStr {
			all.add(strconv.FormatBool(isMessage)+"."+place, strings.Clone(v.Str()))
		} else if strings.HasSuffix(key, ".content") {
			r.fail(failure.Invalid)
		}
	}
	tree, _ := all.tree().(jsontree.Object)
	messages := tree.Array("true")
	// A client that has too many attributes drops some, which may be messages.
	if messages == nil || span.DroppedAttributesCount() > 0 {
		r.fail(failure.Truncated)
	}
	for i, m := range messages {
		messages[i] = messageOf(m, "")
	}
	request := parametersRecorded(r, attributes)
	if _, ok := request.Lookup("tools"); !ok {
		var tools jsontree.Array
		for _, tool := range tree.Array("false") {
			o, _ := tool.(jsontree.Object)
			if definition, _, err := jsontree.Decode(o.Text("json_schema")); err == nil {
				tools = append(tools, definition)
			}
		}
		request = append(request, jsontree.Member{Key: "tools", Value: toolsOf(tools)})
	}
	return append(request, jsontree.Member{Key: "messages", Value: messages})
}

// parametersRecorded returns the members of a request, messages excepted, that a client wrote
// as one text. A text that is no object has none.
func parametersRecorded(r *reading, attributes pcommon.Map) (request jsontree.Object) {
	for key, v := range attributes.All() {
		if !strings.HasSuffix(key, "invocation_parameters") && !strings.HasSuffix(key, "model.parameters") || v.Type() != pcommon.ValueTypeStr {
			continue
		}
		if !r.take(len(v.Str())) {
			return nil
		}
		tree, _, _ := jsontree.Decode(strings.Clone(v.Str())) // no tree where it is no JSON
		recorded, _ := tree.(jsontree.Object)
		request = append(request, slices.DeleteFunc(recorded, func(m jsontree.Member) bool { return m.Key == "messages" || m.Value == nil })...)
	}
	return request
}

// node is a place in attributes that are named after their places in lists, such as
// llm.input_messages.0.message.tool_calls.1.tool_call.id. It has texts and further nodes.
type node map[string]any

// maxNames is more than the names that an attribute's consists of.
const maxNames = 16

// add puts the text of an attribute at its place. Where a text has further names, it counts.
func (n node) add(key, text string) {
	names := strings.Split(key, ".")
	if len(names) > maxNames {
		return
	}
	for _, name := range names[:len(names)-1] {
		below, ok := shared.Entry(n, name, func() any { return node{} }).(node)
		if !ok {
			return
		}
		n = below
	}
	n[names[len(names)-1]] = text
}

// wrappers are names of objects with one member, which stands for them.
var wrappers = []string{"message", "message_content", "tool_call", "tool"}

// tree returns what is at a place and below. Where all names are numbers, and none is
// missing, it is a list.
func (n node) tree() any {
	list, object := make(jsontree.Array, len(n)), jsontree.Object{}
	for _, name := range slices.Sorted(maps.Keys(n)) {
		value := n[name]
		if below, ok := value.(node); ok {
			value = below.tree()
		}
		if i, err := strconv.Atoi(name); err == nil && 0 <= i && i < len(list) {
			list[i] = value
		} else {
			object = append(object, jsontree.Member{Key: name, Value: value})
		}
	}
	switch {
	case len(object) == 0:
		return list
	case len(n) == 1 && slices.Contains(wrappers, object[0].Key):
		return object[0].Value
	}
	return object
}

// messageOf returns a message as the API has it, of one without a role that of role.
func messageOf(v any, role string) jsontree.Object {
	m, _ := v.(jsontree.Object)
	calls := jsontree.Array{}
	for _, c := range m.Array("tool_calls") {
		call, _ := c.(jsontree.Object)
		function := call.Object("function")
		if function == nil {
			function = call
		}
		calls = append(calls, toolCall(call.Text("id"), function.Text("name"), function.Text("arguments")))
	}
	content, ok := m.Lookup("content")
	switch parts := m.Array("contents"); {
	case ok:
	case parts != nil:
		content = parts
	case len(calls) == 0:
		content = "" // an empty text is sent as no attribute
	}
	out := jsontree.Of("role", roleOf(cmp.Or(m.Text("role"), role)), "content", content)
	return append(out, jsontree.OfKnown("tool_calls", calls, "name", m.Text("name"), "tool_call_id", m.Text("tool_call_id"))...)
}

// toolCall returns the call of a tool as the API has it.
func toolCall(id, name, arguments string) jsontree.Object {
	return jsontree.Of("id", id, "type", "function",
		"function", jsontree.Of("name", name, "arguments", cmp.Or(arguments, "{}")))
}
