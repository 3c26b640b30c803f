package jsontree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	d := decoder{tokens: json.NewDecoder(strings.NewReader(strict))}
	d.tokens.UseNumber()
	v, err = d.value()
	if err != nil {
		return nil, false, err
	}
	if _, err := d.tokens.Token(); !errors.Is(err, io.EOF) {
		return nil, false, errSyntax
	}
	lossy = !utf8.ValidString(text) || (d.replaced && loneSurrogate(text))
	return v, lossy, nil
}

type decoder struct {
	tokens   *json.Decoder
	replaced bool
}

func (d *decoder) value() (any, error) {
	t, err := d.tokens.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSyntax, err)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return d.array()
		}
		return d.object()
	case json.Number:
		return number(t.String()), nil
	case string:
		return d.text(t), nil
	default: // nil, bool
		return t, nil
	}
}

func (d *decoder) array() (any, error) {
	a := Array{}
	for d.tokens.More() {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	return a, d.end()
}

func (d *decoder) object() (any, error) {
	o := Object{}
	seen := make(map[string]struct{})
	for d.tokens.More() {
		t, err := d.tokens.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSyntax, err)
		}
		key, ok := t.(string)
		if !ok {
			return nil, errSyntax
		}
		key = d.text(key)
		if _, ok := seen[key]; ok {
			return nil, ErrDuplicate
		}
		seen[key] = struct{}{}
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		o = append(o, Member{Key: key, Value: v})
	}
	return o, d.end()
}

func (d *decoder) end() error {
	if _, err := d.tokens.Token(); err != nil {
		return fmt.Errorf("%w: %w", errSyntax, err)
	}
	return nil
}

func (d *decoder) text(s string) string {
	d.replaced = d.replaced || strings.ContainsRune(s, utf8.RuneError)
	return s
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

func specialWord(s string) (word, name string) {
	for _, w := range [...]struct{ word, name string }{
		{"NaN", "nan"}, {"Infinity", "infinity"}, {"-Infinity", "neg_infinity"},
	} {
		if strings.HasPrefix(s, w.word) {
			return w.word, w.name
		}
	}
	return "", ""
}
