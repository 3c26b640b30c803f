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
	all := node{}
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
	for _, one := range all.at(k.Messages).list() {
		messages = append(messages, one.message())
	}
	// A client that has too many attributes drops some, which may be messages.
	if len(messages) < all.at(k.Messages).len() || span.DroppedAttributesCount() > 0 {
		r.fail(failure.Truncated)
	}
	request := k.parameters(r, attributes)
	if model := attr.Text(attributes, k.Model); model != "" && request.Text("model") == "" {
		request = append(jsontree.Object{{Key: "model", Value: strings.Clone(model)}}, request...)
	}
	if _, ok := request.Lookup("tools"); !ok {
		request = append(request, jsontree.Member{Key: "tools", Value: all.at(k.Tools).tools()})
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
		if n[name] == nil {
			n[name] = node{}
		}
		below, ok := n[name].(node)
		if !ok {
			return
		}
		n = below
	}
	n[names[len(names)-1]] = text
}

// at returns the place with a name of several parts.
func (n node) at(name string) node {
	for part := range strings.SplitSeq(name, ".") {
		n, _ = n[part].(node)
	}
	return n
}

func (n node) text(name string) string {
	text, _ := n[name].(string)
	return text
}

// list returns the elements of a list, up to the first that is missing.
func (n node) list() (elements []node) {
	for {
		element, ok := n[strconv.Itoa(len(elements))].(node)
		if !ok {
			return elements
		}
		elements = append(elements, element)
	}
}

// len returns the number of elements of a list, also behind one that is missing.
func (n node) len() (elements int) {
	for _, below := range n {
		if _, ok := below.(node); ok {
			elements++
		}
	}
	return elements
}

// inside returns the place itself, or the wrapper in which some clients have its members.
func (n node) inside(wrapper string) node {
	if inner, ok := n[wrapper].(node); ok {
		return inner
	}
	return n
}

// tools returns the definitions of a list, or nil.
func (n node) tools() any {
	definitions := jsontree.Array{}
	for _, one := range n.list() {
		if v, _, err := jsontree.Decode(one.at("tool").text("json_schema")); err == nil {
			definitions = append(definitions, v)
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	return toolsOf(definitions)
}

// message returns the message at a place as the API has it.
func (n node) message() jsontree.Object {
	n = n.inside("message")
	var content any
	text, hasText := n["content"].(string)
	parts := jsontree.Array{}
	for _, part := range n.at("contents").list() {
		parts = append(parts, part.at("message_content").part())
	}
	calls := jsontree.Array{}
	for _, call := range n.at("tool_calls").list() {
		call = call.inside("tool_call")
		function := call.inside("function")
		calls = append(calls, toolCall(call.text("id"), function.text("name"), function.text("arguments")))
	}
	switch {
	case hasText:
		content = text
	case len(parts) > 0:
		content = parts
	case len(calls) == 0:
		content = "" // an empty text is sent as no attribute
	}
	out := jsontree.Of("role", roleOf(n.text("role")), "content", content)
	return append(out, jsontree.OfKnown("tool_calls", calls, "name", n.text("name"), "tool_call_id", n.text("tool_call_id"))...)
}

// part returns a part of a message as the API has it.
func (n node) part() jsontree.Object {
	kind := n.text("type")
	if kind == "text" {
		return jsontree.Of("type", kind, "text", n.text("text"))
	}
	return jsontree.Of("type", cmp.Or(map[string]string{"image": "image_url", "audio": "input_audio"}[kind], kind))
}

// toolCall returns the call of a tool as the API has it.
func toolCall(id, name, arguments string) jsontree.Object {
	return jsontree.Of("id", id, "type", "function",
		"function", jsontree.Of("name", name, "arguments", cmp.Or(arguments, "{}")))
}
