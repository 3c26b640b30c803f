package jsontree

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"regexp"
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
	d := newDecoder(withoutSpecialFloats(text))
	v = d.value(0)
	if _, end := d.tokens.Token(); !errors.Is(end, io.EOF) {
		d.fail(errSyntax)
	}
	switch {
	case d.err != nil:
		return nil, false, d.err
	case d.repeated:
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
	return newDecoder(string(text)).value(0)
}

// decoder reads a text.
type decoder struct {
	tokens *json.Decoder
	err    error // the first
	// repeated reports whether an object named a key twice, and replaced whether a text
	// has U+FFFD.
	repeated, replaced bool
}

func newDecoder(text string) *decoder {
	d := &decoder{tokens: json.NewDecoder(strings.NewReader(text))}
	d.tokens.UseNumber()
	return d
}

func (d *decoder) fail(err error) { d.err = cmp.Or(d.err, err) }

// next returns the next token of the text.
func (d *decoder) next() json.Token {
	token, err := d.tokens.Token()
	if err != nil {
		d.fail(errSyntax)
	}
	if text, ok := token.(string); ok {
		d.replaced = d.replaced || strings.ContainsRune(text, utf8.RuneError)
	}
	return token
}

// more reports whether an array or an object has another value.
func (d *decoder) more() bool { return d.err == nil && d.tokens.More() }

// value reads a value that depth arrays and objects enclose.
func (d *decoder) value(depth int) any {
	switch t := d.next().(type) {
	case json.Delim:
		if depth == MaxDepth {
			d.fail(ErrDepth)
			return nil
		}
		var v any
		if t == '[' {
			v = d.array(depth + 1)
		} else {
			v = d.object(depth + 1)
		}
		d.next() // the bracket that closes it
		return v
	case json.Number:
		return number(t.String())
	default: // nil, bool, string
		return t
	}
}

func (d *decoder) array(depth int) Array {
	a := Array{}
	for d.more() {
		a = append(a, d.value(depth))
	}
	return a
}

func (d *decoder) object(depth int) Object {
	o := Object{}
	seen := make(map[string]bool)
	for d.more() {
		key, _ := d.next().(string)
		d.repeated = d.repeated || seen[key]
		seen[key] = true
		o = append(o, Member{Key: key, Value: d.value(depth)})
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

// specials are the words that Python and Go write for floats that JSON lacks, and their names.
var specials = map[string]string{
	"NaN": "nan", "Infinity": "infinity", "+Inf": "infinity", "-Infinity": "neg_infinity", "-Inf": "neg_infinity",
}

// textOrSpecial finds those of Python, and the texts that they may stand in. A text without an
// end is one, so that nothing in it is searched again.
var textOrSpecial = regexp.MustCompile(`"(?:[^"\\]|\\(?s:.))*"?|NaN|-?Infinity`)

// withoutSpecialFloats turns the words of specials into tagged objects. What stands in
// texts stays.
func withoutSpecialFloats(text string) string {
	if !strings.Contains(text, "NaN") && !strings.Contains(text, "Infinity") {
		return text
	}
	return textOrSpecial.ReplaceAllStringFunc(text, func(found string) string {
		if name, ok := specials[found]; ok {
			return string(Encode(special(name)))
		}
		return found
	})
}
