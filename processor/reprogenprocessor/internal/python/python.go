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
		list(b, "[", len(v), func(i int) { write(b, v[i]) }, "]")
	case jsontree.Object:
		if IsTagged(v) {
			writeTagged(b, v)
			return
		}
		list(b, "{", len(v), func(i int) {
			write(b, v[i].Key)
			b.WriteString(": ")
			write(b, v[i].Value)
		}, "}")
	default:
		b.WriteString("None")
	}
}

// list writes n elements, each by its index, with commas between them.
func list(b *strings.Builder, before string, n int, element func(i int), after string) {
	b.WriteString(before)
	for i := 0; i < n && b.Len() <= maxLength; i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		element(i)
	}
	b.WriteString(after)
}

// writeTagged writes tagged values, and tensors by their shape.
func writeTagged(b *strings.Builder, o jsontree.Object) {
	tag := o.Text("__type__")
	elements, _ := o.Lookup("elements")
	all, isList := elements.(jsontree.Array)
	element := func(i int) { write(b, all[i]) }
	switch {
	case tag == "tuple" && isList && len(all) != 1:
		list(b, "(", len(all), element, ")")
	case (tag == "tuple" || tag == "set" || tag == "frozenset") && isList:
		list(b, tag+"([", len(all), element, "])")
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
