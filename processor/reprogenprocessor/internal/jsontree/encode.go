package jsontree

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Encode writes a value as compact JSON in printable ASCII. Neither a quote
// character ' nor any byte outside 0x20-0x7E occurs in it.
func Encode(v any) []byte {
	var e encoder
	e.value(v, 0)
	return e.b.Bytes()
}

// EncodeSpaced writes a value like Encode, with a space behind each comma and
// colon between members and elements.
func EncodeSpaced(v any) []byte {
	e := encoder{spaced: true}
	e.value(v, 0)
	return e.b.Bytes()
}

// EncodeIndent writes a value like Encode, with a line for each member and
// element, so that line feeds occur too. It ends with one.
func EncodeIndent(v any) []byte {
	e := encoder{indent: true}
	e.value(v, 0)
	e.b.WriteByte('\n')
	return e.b.Bytes()
}

type encoder struct {
	b      bytes.Buffer
	indent bool
	spaced bool
}

func (e *encoder) value(v any, depth int) {
	switch v := v.(type) {
	case bool:
		if v {
			e.b.WriteString("true")
		} else {
			e.b.WriteString("false")
		}
	case Number:
		e.b.WriteString(string(v))
	case string:
		e.text(v)
	case Array:
		e.b.WriteByte('[')
		for i, element := range v {
			e.separate(i, depth+1)
			e.value(element, depth+1)
		}
		e.close(len(v), depth, ']')
	case Object:
		e.b.WriteByte('{')
		for i, m := range v {
			e.separate(i, depth+1)
			e.text(m.Key)
			e.b.WriteByte(':')
			if e.indent || e.spaced {
				e.b.WriteByte(' ')
			}
			e.value(m.Value, depth+1)
		}
		e.close(len(v), depth, '}')
	default:
		e.b.WriteString("null")
	}
}

func (e *encoder) separate(i, depth int) {
	if i > 0 {
		e.b.WriteByte(',')
		if e.spaced {
			e.b.WriteByte(' ')
		}
	}
	e.newline(depth)
}

func (e *encoder) close(n, depth int, bracket byte) {
	if n > 0 {
		e.newline(depth)
	}
	e.b.WriteByte(bracket)
}

// newline indents by one space a level: at 200 levels, two would make most of
// a file out of spaces.
func (e *encoder) newline(depth int) {
	if !e.indent {
		return
	}
	e.b.WriteByte('\n')
	for range depth {
		e.b.WriteByte(' ')
	}
}

func (e *encoder) text(s string) {
	e.b.WriteByte('"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			e.ascii(c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			e.escape(high)
			e.escape(low)
		} else {
			e.escape(r)
		}
	}
	e.b.WriteByte('"')
}

func (e *encoder) ascii(c byte) {
	switch {
	case c == '"' || c == '\\':
		e.b.WriteByte('\\')
		e.b.WriteByte(c)
	case c == '\n':
		e.b.WriteString(`\n`)
	case c == '\t':
		e.b.WriteString(`\t`)
	case c < 0x20 || c == '\'' || c == 0x7F:
		e.escape(rune(c))
	default:
		e.b.WriteByte(c)
	}
}

func (e *encoder) escape(r rune) {
	const hex = "0123456789abcdef"
	e.b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		e.b.WriteByte(hex[r>>shift&0xF])
	}
}
