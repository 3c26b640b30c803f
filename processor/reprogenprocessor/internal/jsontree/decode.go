package jsontree

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

const (
	// MaxDepth is the number of arrays and objects that may enclose a value.
	// Python's own decoder gives up at about 1000.
	MaxDepth = 200
	// maxIntDigits is the length above which an integer travels as tagged
	// text: Python refuses to convert more than 4300 digits by default.
	maxIntDigits = 4000
)

var (
	// errSyntax means that a text is not JSON (with NaN and Infinity).
	errSyntax = errors.New("not valid JSON")
	// ErrDepth means that a text is nested more than MaxDepth deep.
	ErrDepth = errors.New("nested too deep")
	// ErrDuplicate means that an object names a key twice.
	ErrDuplicate = errors.New("duplicate key")
)

// Decode reads one JSON text. NaN, Infinity and -Infinity, which Python
// writes, become tagged objects. It reports whether a character was replaced
// by U+FFFD because the text cannot be represented. Errors are errSyntax,
// ErrDepth and ErrDuplicate.
func Decode(text string) (v any, lossy bool, err error) {
	strict, err := replaceSpecialFloats(text)
	if err != nil {
		return nil, false, err
	}
	if !json.Valid([]byte(strict)) {
		return nil, false, errSyntax
	}
	d := newDecoder(strict)
	v = d.value()
	if d.repeated {
		return nil, false, ErrDuplicate
	}
	return v, !utf8.ValidString(text) || (d.replaced && loneSurrogate(text)), nil
}

// From returns a value as encoding/json writes it. What that cannot write is nil.
func From(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return newDecoder(string(text)).value()
}

// decoder reads a text that is known to be JSON.
type decoder struct {
	tokens *json.Decoder
	// repeated reports whether an object named a key twice, and replaced whether a text
	// has U+FFFD.
	repeated, replaced bool
}

func newDecoder(text string) *decoder {
	d := &decoder{tokens: json.NewDecoder(strings.NewReader(text))}
	d.tokens.UseNumber()
	return d
}

// next returns the next token of the text.
func (d *decoder) next() json.Token {
	token, _ := d.tokens.Token() // the text is valid
	if text, ok := token.(string); ok {
		d.replaced = d.replaced || strings.ContainsRune(text, utf8.RuneError)
	}
	return token
}

func (d *decoder) value() any {
	switch t := d.next().(type) {
	case json.Delim:
		var v any
		if t == '[' {
			v = d.array()
		} else {
			v = d.object()
		}
		d.next() // the bracket that closes it
		return v
	case json.Number:
		return number(t.String())
	default: // nil, bool, string
		return t
	}
}

func (d *decoder) array() Array {
	a := Array{}
	for d.tokens.More() {
		a = append(a, d.value())
	}
	return a
}

func (d *decoder) object() Object {
	o := Object{}
	seen := make(map[string]bool)
	for d.tokens.More() {
		key, _ := d.next().(string)
		d.repeated = d.repeated || seen[key]
		seen[key] = true
		o = append(o, Member{Key: key, Value: d.value()})
	}
	return o
}

func number(digits string) any {
	if len(digits) > maxIntDigits && !strings.ContainsAny(digits, ".eE") {
		return Of("__type__", "int", "__schema__", Number("1"), "value", digits)
	}
	return Number(digits)
}

// loneSurrogate reports whether text may have an escape of half a surrogate
// pair. It is asked only where a decoded string has U+FFFD, so that naming
// a whole pair as a half is all it can get wrong.
func loneSurrogate(text string) bool {
	return strings.Contains(text, `\ud`) || strings.Contains(text, `\uD`)
}

// replaceSpecialFloats turns the three bare words that Python writes for
// floats that JSON lacks into tagged objects, and measures the depth. What
// stands in strings stays.
func replaceSpecialFloats(text string) (string, error) {
	var b strings.Builder
	depth, copied, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if inString {
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
			}
			continue
		}
		switch c {
		case '"':
			inString = true
		case '[', '{':
			if depth++; depth > MaxDepth {
				return "", ErrDepth
			}
		case ']', '}':
			depth--
		case 'N', 'I', '-':
			word, name := specialWord(text[i:])
			if word == "" {
				continue
			}
			b.WriteString(text[copied:i])
			b.Write(Encode(special(name)))
			i += len(word) - 1
			copied = i + 1
		}
	}
	if copied == 0 {
		return text, nil
	}
	b.WriteString(text[copied:])
	return b.String(), nil
}

// specials are the words that Python writes for floats that JSON lacks, and their names.
var specials = [...]struct{ word, name string }{{"NaN", "nan"}, {"Infinity", "infinity"}, {"-Infinity", "neg_infinity"}}

func specialWord(s string) (word, name string) {
	for _, w := range specials {
		if strings.HasPrefix(s, w.word) {
			return w.word, w.name
		}
	}
	return "", ""
}
