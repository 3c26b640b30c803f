package genaichat

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
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
	return attr.Text(attributes, k.BodyType) == "application/json" && listOfMessages.MatchString(attr.Text(attributes, k.Body))
}

var listOfMessages = regexp.MustCompile(`"messages"\s*:\s*\[\s*\{`)

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

// body reads the input of a model that is a whole request, if there is one.
func (k *keys) body(r *reading, span ptrace.Span) jsontree.Object {
	if !k.hasBody(span.Attributes()) {
		return nil
	}
	recorded, ok := r.decode(jsonText(span.Attributes(), k.Body)).(jsontree.Object)
	if !ok {
		r.fail(failure.Invalid)
	}
	return known(recorded)
}

// list makes a request of messages that are attributes one by one, and of what else
// belongs to it, if there are any.
func (k *keys) list(r *reading, span ptrace.Span) jsontree.Object {
	attributes := span.Attributes()
	if !k.hasList(attributes) {
		return nil
	}
	all := listed{texts: make(map[string]string), known: make(map[string]bool)}
	for key, v := range attributes.All() {
		if !k.isListed(key) {
			continue
		}
		if size, _ := mlattr.Size(v, failure.MaxCallBytes); !r.take(len(key) + size) {
			return nil
		}
		if v.Type() == pcommon.ValueTypeStr {
			all.add(key, strings.Clone(v.Str()))
		} else if strings.HasSuffix(key, ".content") {
			r.fail(failure.Invalid)
		}
	}
	messages := jsontree.Array{}
	for _, at := range all.list(k.Messages) {
		messages = append(messages, all.message(at))
	}
	// A client that has too many attributes drops some, which may be messages.
	if len(messages) < all.len(k.Messages) || span.DroppedAttributesCount() > 0 {
		r.fail(failure.Truncated)
	}
	request := k.parameters(r, attributes)
	if model := attr.Text(attributes, k.Model); model != "" && request.Text("model") == "" {
		request = append(jsontree.Object{{Key: "model", Value: strings.Clone(model)}}, request...)
	}
	if _, ok := request.Lookup("tools"); !ok {
		request = append(request, jsontree.Member{Key: "tools", Value: all.tools(k.Tools)})
	}
	return append(request, jsontree.Member{Key: "messages", Value: messages})
}

// parameters returns the members of a request, messages excepted, that a client wrote as
// one text. A text that is no object has none.
func (k *keys) parameters(r *reading, attributes pcommon.Map) jsontree.Object {
	text := attr.Text(attributes, k.Parameters)
	if !r.take(len(text)) {
		return nil
	}
	v, _, _ := jsontree.Decode(strings.Clone(text)) // no tree where it is no JSON
	recorded, _ := v.(jsontree.Object)
	return slices.DeleteFunc(known(recorded), func(m jsontree.Member) bool { return m.Key == "messages" || m.Value == nil })
}

// listed are attributes that are named after their places in lists, such as
// llm.input_messages.0.message.tool_calls.1.tool_call.id.
type listed struct {
	texts map[string]string
	// known are the places that they are named after: llm.input_messages.0.
	known map[string]bool
}

// maxNames is more than the names that an attribute's consists of.
const maxNames = 16

func (l listed) add(key, text string) {
	if strings.Count(key, ".") > maxNames {
		return
	}
	l.texts[key] = text
	for at := range key {
		if key[at] == '.' {
			l.known[key[:at]] = true
		}
	}
}

// list returns the places of a list's elements, up to the first that is missing.
func (l listed) list(name string) (places []string) {
	for {
		at := name + "." + strconv.Itoa(len(places))
		if !l.known[at] {
			return places
		}
		places = append(places, at)
	}
}

// len returns the number of elements of a list, also behind one that is missing.
func (l listed) len(name string) (n int) {
	for at := range l.known {
		if rest, ok := strings.CutPrefix(at, name+"."); ok && !strings.Contains(rest, ".") {
			n++
		}
	}
	return n
}

// tools returns the definitions that are attributes one by one, or nil.
func (l listed) tools(name string) any {
	definitions := jsontree.Array{}
	for _, at := range l.list(name) {
		if v, _, err := jsontree.Decode(l.texts[at+".tool.json_schema"]); err == nil {
			definitions = append(definitions, v)
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	return toolsOf(definitions)
}

// inside returns what the names at a place begin with. Some clients have them in a wrapper.
func (l listed) inside(at, wrapper string) string {
	if l.known[at+"."+wrapper] {
		at += "." + wrapper
	}
	return at + "."
}

// message returns the message at a place as the API has it.
func (l listed) message(at string) jsontree.Object {
	at = l.inside(at, "message")
	var content any
	text, hasText := l.texts[at+"content"]
	parts := jsontree.Array{}
	for _, part := range l.list(at + "contents") {
		parts = append(parts, l.part(part+".message_content."))
	}
	calls := jsontree.Array{}
	for _, call := range l.list(at + "tool_calls") {
		call = l.inside(call, "tool_call")
		function := l.inside(strings.TrimSuffix(call, "."), "function")
		calls = append(calls, toolCall(l.texts[call+"id"], l.texts[function+"name"], l.texts[function+"arguments"]))
	}
	switch {
	case hasText:
		content = text
	case len(parts) > 0:
		content = parts
	case len(calls) == 0:
		content = "" // an empty text is sent as no attribute
	}
	out := jsontree.Of("role", roleOf(l.texts[at+"role"]), "content", content)
	return append(out, jsontree.OfKnown("tool_calls", calls, "name", l.texts[at+"name"], "tool_call_id", l.texts[at+"tool_call_id"])...)
}

// toolCall returns the call of a tool as the API has it.
func toolCall(id, name, arguments string) jsontree.Object {
	return jsontree.Of("id", id, "type", "function",
		"function", jsontree.Of("name", name, "arguments", cmp.Or(arguments, "{}")))
}

// part returns a part of a message as the API has it.
func (l listed) part(at string) jsontree.Object {
	kind := l.texts[at+"type"]
	if kind == "text" {
		return jsontree.Of("type", kind, "text", l.texts[at+"text"])
	}
	return jsontree.Of("type", cmp.Or(map[string]string{"image": "image_url", "audio": "input_audio"}[kind], kind))
}
