package jsontree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// Encode writes a value as compact JSON in printable ASCII. Neither a quote
// character ' nor any byte outside 0x20-0x7E occurs in it.
func Encode(v any) []byte { return appendValue(nil, v, "") }

// EncodeSpaced writes a value like Encode, with a space behind each comma and
// colon between members and elements.
func EncodeSpaced(v any) []byte { return appendValue(nil, v, " ") }

// EncodeIndent writes a value like Encode, with a line for each member and
// element, so that line feeds occur too. It ends with one. It indents by one space a
// level: at 200 levels, two would make most of a file out of spaces.
func EncodeIndent(v any) []byte {
	var b bytes.Buffer
	_ = json.Indent(&b, Encode(v), "", " ") // what Encode writes is JSON
	b.WriteByte('\n')
	return b.Bytes()
}

// appendValue appends a value, with space behind each comma and colon.
func appendValue(b []byte, v any, space string) []byte {
	switch v := v.(type) {
	case bool:
		return fmt.Append(b, v)
	case Number:
		return append(b, v...)
	case string:
		return appendText(b, v)
	case Array:
		b = append(b, '[')
		for i, element := range v {
			if i > 0 {
				b = append(append(b, ','), space...)
			}
			b = appendValue(b, element, space)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(append(b, ','), space...)
			}
			b = append(append(appendText(b, m.Key), ':'), space...)
			b = appendValue(b, m.Value, space)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r >= 0x20 && r < 0x7F && r != '\'':
			b = append(b, byte(r))
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
	}
	return append(b, '"')
}
