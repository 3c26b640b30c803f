// Package python writes recorded values as a person would write them in Python. What
// it writes is for reading only: no script runs it.
package python

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// IsTagged reports whether an object stands for a value that JSON has not.
func IsTagged(o jsontree.Object) bool {
	_, ok := o.Lookup("__type__")
	return ok
}

// maxLength is the length beyond which Text writes no more.
const maxLength = 480

// Text returns a value as Python code, abbreviated beyond some 480 bytes.
func Text(v any) string {
	var b strings.Builder
	write(&b, v)
	return b.String()
}

func write(b *strings.Builder, v any) {
	if b.Len() > maxLength {
		return
	}
	switch v := v.(type) {
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case jsontree.Number:
		b.WriteString(string(v))
	case string:
		b.WriteString(`"` + Spelled(v[:min(len(v), maxLength)], true) + `"`)
	case jsontree.Array:
		writeElements(b, "[", v, "]")
	case jsontree.Object:
		if IsTagged(v) {
			writeTagged(b, v)
			return
		}
		b.WriteString("{")
		for i, m := range v {
			if b.Len() > maxLength {
				break
			}
			b.WriteString(map[bool]string{false: ", "}[i == 0])
			write(b, m.Key)
			b.WriteString(": ")
			write(b, m.Value)
		}
		b.WriteString("}")
	default:
		b.WriteString("None")
	}
}

func writeElements(b *strings.Builder, before string, list jsontree.Array, after string) {
	b.WriteString(before)
	for i, element := range list {
		if b.Len() > maxLength {
			break
		}
		b.WriteString(map[bool]string{false: ", "}[i == 0])
		write(b, element)
	}
	b.WriteString(after)
}

// writeTagged writes tagged values, and tensors by their shape.
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
		b.WriteString(`float("` + Spelled(strings.Replace(o.Text("value"), "neg_infinity", "-inf", 1), true) + `")`)
	case tag == "tensor" || tag == "ndarray":
		b.WriteString("<" + tag + " " + Spelled(o.Text("dtype"), true) + " ")
		shape, _ := o.Lookup("shape")
		write(b, shape)
		if device := o.Text("device"); device != "" {
			b.WriteString(" on " + Spelled(device, true))
		}
		b.WriteString(">")
	default:
		b.WriteString("<" + Spelled(cmp.Or(tag, "tagged value"), true))
		if value := o.Text("value"); value != "" {
			b.WriteString(" " + Spelled(value[:min(len(value), 100)], true))
		}
		b.WriteString(">")
	}
}

// Spelled writes everything but printable ASCII as Python's escapes; within
// quotes also what ends a text there.
func Spelled(s string, quoted bool) string {
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
