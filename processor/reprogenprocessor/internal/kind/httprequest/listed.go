package httprequest

import (
	"cmp"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// keys are the attributes of a client that writes the messages of a request one by
// one, or the whole request as one text.
type keys struct {
	table.ListedRequest
	firstRole string
}

var clients = func() (all []keys) {
	for _, r := range vocabulary.ListedRequests() {
		all = append(all, keys{r, r.Messages + ".0.message.role"})
	}
	return all
}()

// keysOf returns the keys of the client whose call to a model a span is, or nil.
func keysOf(attributes pcommon.Map) *keys {
	for i := range clients {
		if k := &clients[i]; strings.EqualFold(attr.Text(attributes, k.KindKey), k.Kind) {
			return k
		}
	}
	return nil
}

// hasBody reports whether the input of a model looks like a request: with a list
// of objects as its messages. Several frameworks send Python's text for each
// message there, or lists of lists.
func (k *keys) hasBody(attributes pcommon.Map) bool {
	if attr.Text(attributes, k.BodyType) != "application/json" {
		return false
	}
	_, list, _ := strings.Cut(attr.Text(attributes, k.Body), `"messages"`)
	for _, next := range [...]string{":", "[", "{"} {
		var found bool
		if list, found = strings.CutPrefix(strings.TrimLeft(list, " \t\r\n"), next); !found {
			return false
		}
	}
	return true
}

// hasList reports whether there are messages one by one.
func (k *keys) hasList(attributes pcommon.Map) bool {
	_, ok := attributes.Get(k.firstRole)
	return ok
}

// isListed reports whether an attribute is part of a message or of a tool.
func (k *keys) isListed(key string) bool {
	messages, ok := strings.CutPrefix(key, k.Messages)
	tools, isTool := strings.CutPrefix(key, k.Tools)
	return ok && strings.HasPrefix(messages, ".") || isTool && strings.HasPrefix(tools, ".")
}

// listed is a message, a part of one, or a call of a tool in it: its texts by
// the rest of their names, and what it has of a list.
type listed struct {
	texts map[string]string
	lists map[string]map[int]*listed
}

// maxLists is how many lists are in one another: messages, and their parts.
const maxLists = 2

// readList reads messages that are attributes one by one, and what else belongs to
// the request.
func (k *keys) readList(chat *chat, span ptrace.Span) {
	if !k.hasList(span.Attributes()) {
		return
	}
	chat.Listed = jsontree.Array{}
	parameters := attr.Text(span.Attributes(), k.Parameters)
	chat.Size = len(parameters)
	for key, v := range span.Attributes().All() {
		if k.isListed(key) {
			size, _ := mlattr.Size(v, payload.MaxBytes)
			chat.Size += len(key) + size
		}
	}
	if chat.Size > payload.MaxBytes {
		return
	}
	all := &listed{}
	for key, v := range span.Attributes().All() {
		if k.isListed(key) && v.Type() == pcommon.ValueTypeStr {
			all.set(key, v.Str(), maxLists)
		}
	}
	messages, complete := all.list(k.Messages)
	for _, m := range messages {
		chat.Listed = append(chat.Listed, m.message())
	}
	// A client that has too many attributes drops some, which may be messages.
	chat.Cut = !complete || span.DroppedAttributesCount() > 0
	chat.Parameters = parametersOf(strings.Clone(parameters))
	if model := attr.Text(span.Attributes(), k.Model); model != "" && chat.Parameters.Text("model") == "" {
		chat.Parameters = append(jsontree.Object{{Key: "model", Value: strings.Clone(model)}}, chat.Parameters...)
	}
	if _, ok := chat.Parameters.Lookup("tools"); !ok {
		chat.Parameters = append(chat.Parameters, jsontree.Member{Key: "tools", Value: all.tools(k.Tools)})
	}
}

// set puts a text into the lists that its name has: lists.N.name, also nested.
func (l *listed) set(name, text string, levels int) {
	before, index, after := splitIndex(name)
	if after == "" || levels == 0 {
		if l.texts == nil {
			l.texts = make(map[string]string)
		}
		l.texts[strings.Clone(name)] = strings.Clone(text)
		return
	}
	if l.lists == nil {
		l.lists = make(map[string]map[int]*listed)
	}
	list := l.lists[before]
	if list == nil {
		list = make(map[int]*listed)
		l.lists[strings.Clone(before)] = list
	}
	if list[index] == nil {
		list[index] = &listed{}
	}
	list[index].set(after, text, levels-1)
}

// list returns a list, and whether it has no gaps.
func (l *listed) list(name string) (list []*listed, complete bool) {
	for i := range len(l.lists[name]) {
		e := l.lists[name][i]
		if e == nil {
			return list, false
		}
		list = append(list, e)
	}
	return list, true
}

// tools returns the definitions that are attributes one by one, or nil.
func (l *listed) tools(name string) any {
	definitions := jsontree.Array{}
	tools, _ := l.list(name)
	for _, t := range tools {
		if v, _, err := jsontree.Decode(t.texts["tool.json_schema"]); err == nil {
			definitions = append(definitions, v)
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	return toolsOf(definitions)
}

// splitIndex splits name.N.rest at the first number; rest is "" without one.
func splitIndex(name string) (before string, index int, after string) {
	for at := 0; ; {
		dot := strings.IndexByte(name[at:], '.')
		if dot < 0 {
			return name, 0, ""
		}
		start := at + dot + 1
		digits, rest, found := strings.Cut(name[start:], ".")
		if n, err := strconv.ParseUint(digits, 10, 31); err == nil && found {
			return name[:start-1], int(n), rest
		}
		at = start
	}
}

// message returns the message as the API has it.
func (l *listed) message() jsontree.Object {
	out := jsontree.Of("role", roleOf(l.texts["message.role"]))
	text, hasText := l.texts["message.content"]
	parts := jsontree.Array{}
	contents, _ := l.list("message.contents")
	for _, p := range contents {
		parts = append(parts, p.part())
	}
	calls := jsontree.Array{}
	toolCalls, _ := l.list("message.tool_calls")
	for _, c := range toolCalls {
		calls = append(calls, jsontree.Of("id", c.texts["tool_call.id"], "type", "function", "function", jsontree.Of(
			"name", c.texts["tool_call.function.name"],
			"arguments", cmp.Or(c.texts["tool_call.function.arguments"], "{}"))))
	}
	var content any
	switch {
	case hasText:
		content = text
	case len(parts) > 0:
		content = parts
	case len(calls) == 0:
		content = "" // an empty text is sent as no attribute
	}
	out = append(out, jsontree.Member{Key: "content", Value: content})
	if len(calls) > 0 {
		out = append(out, jsontree.Member{Key: "tool_calls", Value: calls})
	}
	for _, name := range [...]string{"name", "tool_call_id"} {
		if v := l.texts["message."+name]; v != "" {
			out = append(out, jsontree.Member{Key: name, Value: v})
		}
	}
	return out
}

// part returns a part of a message as the API has it.
func (l *listed) part() jsontree.Object {
	kind := l.texts["message_content.type"]
	if kind == "text" {
		return jsontree.Of("type", kind, "text", l.texts["message_content.text"])
	}
	return jsontree.Of("type", cmp.Or(map[string]string{"image": "image_url", "audio": "input_audio"}[kind], kind))
}
