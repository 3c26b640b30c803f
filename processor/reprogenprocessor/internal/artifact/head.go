package artifact

import (
	"fmt"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

const (
	// maxHeadColumns is the length of a head's line, its label included.
	maxHeadColumns = 118
	// maxCallLines is how many lines of a head say what was called.
	maxCallLines = 16
)

// headOf returns what a person reads first: the error, the call and what to
// run. It is abbreviated, and for reading only: the script works with the data
// that follow it. Each line begins with a label or a space.
func headOf(f *failure.Failure, spec jsontree.Object) string {
	var h head
	expect, source := member(spec, "expect"), member(spec, "source")
	message := expect.Text("message")
	if message == "" {
		message = expect.Text("message_template")
	}
	h.add("error", strings.TrimSuffix(or(expect.Text("type"), "(type unknown)")+": "+message, ": "))
	if trigger := expect.Text("trigger"); trigger != "" {
		h.add("trigger", trigger)
	}
	h.call(f, spec)
	h.add("where", "service "+or(source.Text("service"), "(unknown)")+", span "+or(source.Text("span"), "(unnamed)"))
	h.add("trace", f.Span.TraceID+", span "+f.Span.SpanID+", "+source.Text("time"))
	if list, _ := spec.Lookup("redacted"); len(list.(jsontree.Array)) > 0 {
		h.add("withheld", fmt.Sprintf("%d values; --info lists them", len(list.(jsontree.Array))))
	}
	if f.Kind == failure.Context {
		h.add("run", "python3 repro.py   show all that is known; nothing can be replayed")
		return h.b.String()
	}
	flags := flagsFor(f, spec)
	label, width := "run", len(" --plain"+flags)
	for _, line := range [...]struct{ flags, effect string }{
		{" --dry-run", "show the call, and whether it may be made"},
		{flags, "make the call in a child process, and judge it"},
		{" --plain" + flags, "print the call alone, for a bug report"},
		{" --help", "list the flags and the exit codes"},
	} {
		h.add(label, fmt.Sprintf("python3 repro.py%-*s   %s", max(width, 10), line.flags, line.effect))
		label = ""
	}
	return h.b.String()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

type head struct{ b strings.Builder }

// add writes one line. Whatever the text is, the line has printable ASCII
// alone, and no two single quotes in a row.
func (h *head) add(label, text string) {
	text = strings.ReplaceAll(spelled(text, false), "''", `'\x27`)
	if room := maxHeadColumns - 11; len(text) > room {
		text = text[:room-4] + " ..."
	}
	fmt.Fprintf(&h.b, "%-10s %s\n", label, text)
}

// list writes a line for each text, and how many there are beyond a limit.
func (h *head) list(label string, texts []string, limit int) {
	for i, text := range texts {
		if i == limit {
			h.add("", fmt.Sprintf("... (%d more)", len(texts)-limit))
			return
		}
		h.add(label, text)
		label = ""
	}
}

// call writes what was called, in the form of its kind.
func (h *head) call(f *failure.Failure, spec jsontree.Object) {
	payload := member(spec, "payload")
	switch {
	case f.Kind == failure.Context:
		h.add("no call", reasons[string(f.Reason)])
		if statement := member(spec, "statement"); statement != nil {
			h.list("statement", strings.Split(statement.Text("query"), "\n"), maxCallLines-1)
		}
	case f.Kind == failure.PythonCall && payload == nil:
		h.add("call", "recorded at "+member(spec, "payload_ref").Text("uri"))
	case f.Kind == failure.PythonCall:
		h.pythonCall(payload)
	case f.Kind == failure.PythonCode:
		h.list("code", strings.Split(strings.Trim(payload.Text("code"), "\n"), "\n"), maxCallLines-1)
	case f.Kind == failure.GenAIChat:
		h.chat(member(payload, "request"))
	case f.Kind == failure.TrainStep:
		command, _ := payload.Lookup("command")
		words, _ := command.(jsontree.Array)
		texts := make([]string, 0, len(words))
		for _, w := range words {
			word, _ := w.(string)
			texts = append(texts, word)
		}
		h.add("command", strings.Join(texts, " "))
		if checkpoint := member(spec, "training").Text("repro.checkpoint.uri"); checkpoint != "" {
			h.add("began with", checkpoint)
		}
	case f.Kind == failure.HTTPRequest:
		h.add("request", payload.Text("method")+" "+payload.Text("target"))
		if body := payload.Text("body"); body != "" {
			h.list("body", strings.Split(body, "\n"), 8)
		}
	}
}

// pythonCall writes a call in one line, or with a line for each argument.
func (h *head) pythonCall(payload jsontree.Object) {
	target := or(payload.Text("python_module"), payload.Text("library")) + "." + payload.Text("function")
	if payload.Text("call_type") == "module_attr" {
		h.add("attribute", target)
		return
	}
	var arguments []string
	args, _ := payload.Lookup("args")
	if list, ok := args.(jsontree.Array); ok {
		for _, v := range list {
			arguments = append(arguments, pythonOf(v))
		}
	} else if args != nil {
		arguments = append(arguments, "*"+pythonOf(args))
	}
	kwargs, _ := payload.Lookup("kwargs")
	if object, ok := kwargs.(jsontree.Object); ok && !isTagged(object) {
		for _, m := range object {
			arguments = append(arguments, m.Key+"="+pythonOf(m.Value))
		}
	} else if kwargs != nil {
		arguments = append(arguments, "**"+pythonOf(kwargs))
	}
	whole := target + "(" + strings.Join(arguments, ", ") + ")"
	if len(spelled(whole, false)) <= maxHeadColumns-11 {
		h.add("call", whole)
		return
	}
	h.add("call", target+"(")
	h.list("", argumentLines(arguments), maxCallLines-3)
	h.add("", ")")
}

func argumentLines(arguments []string) []string {
	out := make([]string, len(arguments))
	for i, a := range arguments {
		out[i] = "    " + a + ","
	}
	return out
}

func (h *head) chat(request jsontree.Object) {
	h.add("chat", or(request.Text("model"), "(no model was recorded)"))
	list, _ := request.Lookup("messages")
	messages, _ := list.(jsontree.Array)
	var texts []string
	for _, v := range messages {
		m, _ := v.(jsontree.Object)
		content, _ := m.Lookup("content")
		text, ok := content.(string)
		if !ok && content != nil {
			text = pythonOf(content)
		}
		texts = append(texts, m.Text("role")+": "+text)
	}
	h.list("messages", texts, 10)
}

func isTagged(o jsontree.Object) bool {
	_, ok := o.Lookup("__type__")
	return ok
}

// maxPython is the length beyond which pythonOf writes no more: nobody sees it.
const maxPython = 4 * maxHeadColumns

// pythonOf returns a value as a person would write it in Python, abbreviated.
func pythonOf(v any) string {
	var b strings.Builder
	writePython(&b, v)
	return b.String()
}

func writePython(b *strings.Builder, v any) {
	if b.Len() > maxPython {
		return
	}
	switch v := v.(type) {
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case jsontree.Number:
		b.WriteString(string(v))
	case string:
		b.WriteString(`"` + spelled(v[:min(len(v), maxPython)], true) + `"`)
	case jsontree.Array:
		writeElements(b, "[", v, "]")
	case jsontree.Object:
		if isTagged(v) {
			writeTagged(b, v)
			return
		}
		b.WriteString("{")
		for i, m := range v {
			if b.Len() > maxPython {
				break
			}
			b.WriteString(map[bool]string{false: ", "}[i == 0])
			writePython(b, m.Key)
			b.WriteString(": ")
			writePython(b, m.Value)
		}
		b.WriteString("}")
	default:
		b.WriteString("None")
	}
}

func writeElements(b *strings.Builder, before string, list jsontree.Array, after string) {
	b.WriteString(before)
	for i, element := range list {
		if b.Len() > maxPython {
			break
		}
		b.WriteString(map[bool]string{false: ", "}[i == 0])
		writePython(b, element)
	}
	b.WriteString(after)
}

// writeTagged writes Snakepit's tagged values, and tensors by their shape.
func writeTagged(b *strings.Builder, o jsontree.Object) {
	tag := o.Text("__type__")
	elements, _ := o.Lookup("elements")
	list, isList := elements.(jsontree.Array)
	switch {
	case tag == "tuple" && isList && len(list) != 1:
		writeElements(b, "(", list, ")")
	case (tag == "tuple" || tag == "set" || tag == "frozenset") && isList:
		writeElements(b, tag+"([", list, "])")
	case tag == "special_float":
		b.WriteString(`float("` + spelled(strings.Replace(o.Text("value"), "neg_infinity", "-inf", 1), true) + `")`)
	case tag == "tensor" || tag == "ndarray":
		b.WriteString("<" + tag + " " + spelled(o.Text("dtype"), true) + " ")
		shape, _ := o.Lookup("shape")
		writePython(b, shape)
		if device := o.Text("device"); device != "" {
			b.WriteString(" on " + spelled(device, true))
		}
		b.WriteString(">")
	default:
		b.WriteString("<" + spelled(or(tag, "tagged value"), true))
		if value := o.Text("value"); value != "" {
			b.WriteString(" " + spelled(value[:min(len(value), 100)], true))
		}
		b.WriteString(">")
	}
}

// spelled writes everything but printable ASCII as Python's escapes; within
// quotes also what ends a text there.
func spelled(s string, quoted bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case quoted && (r == '"' || r == '\\'):
			b.WriteString(`\` + string(r))
		case r >= 0x20 && r <= 0x7E:
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r <= 0xFF:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
