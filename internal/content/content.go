// Package content says which text may leave a machine: what is a secret, what is a
// name, an id or a number, and what people and programs wrote. It does not depend on
// telemetry. What is done with the rest is up to those who ask: ml_guard writes its
// length or a hash, repro_gen a mark.
//
// All functions take time linear in the length of their input; callers limit that
// length.
package content

import (
	"encoding/base64"
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// consistsOf reports whether a text has no other bytes than those of a set.
func consistsOf(text string, set *[256]bool) bool {
	for i := range len(text) {
		if !set[text[i]] {
			return false
		}
	}
	return true
}

// beginsWithAny reports whether a text has one of the prefixes.
func beginsWithAny(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// Words returns the words of a list as a set.
func Words(words string) map[string]bool { return setOf(strings.FieldsSeq(words)) }

// linesOf returns the lines of a list as a set.
func linesOf(list string) map[string]bool {
	return setOf(strings.SplitSeq(strings.TrimSuffix(list, "\n"), "\n"))
}

func setOf(texts iter.Seq[string]) map[string]bool {
	set := make(map[string]bool)
	for text := range texts {
		set[text] = true
	}
	return set
}

// markStart is the beginning of the text that replaces a secret.
const markStart = "<REDACTED:"

// Mark returns the replacement of a secret that rule found.
func Mark(rule string) string { return markStart + rule + ">" }

// Redact returns text with each secret replaced by the Mark of its rule, and
// the names of these rules, one for each replacement. It is idempotent. It
// takes time linear in the length of text, about 30 ns a byte and up to ten
// times that for hostile text. A text without secrets is not copied.
func Redact(text string) (string, []string) {
	text, rules := plain(text, nil)
	return (&writer{text: text, rules: rules}).encoded()
}

// plain replaces secrets that are not encoded.
func plain(text string, rules []string) (string, []string) {
	if len(text) < minValue {
		return text, rules
	}
	text, rules = withoutContexts(text, rules)
	text, rules = (&writer{text: text, rules: rules}).tokens()
	return (&scanner{writer: writer{text: text, rules: rules}}).assigned()
}

// writer copies a text and replaces parts of it.
type writer struct {
	text   string
	out    strings.Builder
	copied int
	rules  []string
	// read counts the bytes that rules looked at from the places where they
	// begin. It is proportional to the length of text.
	read int
}

// replace replaces text[from:to] by the mark of rule. Calls must be in order.
func (w *writer) replace(from, to int, rule string) {
	w.out.WriteString(w.text[w.copied:from])
	w.out.WriteString(Mark(rule))
	w.copied = to
	w.rules = append(w.rules, rule)
}

// result returns the text, and the rules including those of the replacements.
func (w *writer) result() (string, []string) {
	if w.copied == 0 {
		return w.text, w.rules
	}
	w.out.WriteString(w.text[w.copied:])
	return w.out.String(), w.rules
}

// encodedRule is the rule for secrets that are encoded.
const encodedRule = "encoded"

const (
	// minEncoded is the length below which a word is not decoded: "password=x"
	// has sixteen characters in base64.
	minEncoded = 16
	// maxEncoded is the length above which a word is not decoded: such long
	// words are data.
	maxEncoded = 64 << 10
)

// encodedByte has the bytes of base64 and of URL encoding.
var encodedByte = alphabet("A-Za-z0-9+/=_%.~-").bytes()

// encoded replaces words that are a secret in base64 or URL encoding. It
// decodes once.
func (w *writer) encoded() (string, []string) {
	text := w.text
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && encodedByte[text[i]] {
			i++
		}
		// A final full stop is not part of the word.
		end := start + len(strings.TrimRight(text[start:i], "."))
		if isEncodedSecret(text[start:end]) {
			w.replace(start, end, encodedRule)
		}
		w.read += end - start
	}
	return w.result()
}

func isEncodedSecret(word string) bool {
	if len(word) < minEncoded || len(word) > maxEncoded {
		return false
	}
	if !strings.Contains(word, "%") && isSecretBase64(word) {
		return true
	}
	if !strings.ContainsAny(word, "%+") {
		return false
	}
	decoded, err := url.QueryUnescape(word)
	return err == nil && hasSecret(decoded)
}

func isSecretBase64(word string) bool {
	// Padding is optional.
	word = strings.TrimRight(word, "=")
	// A name may precede the value: data=cGFz…
	word = word[strings.LastIndexByte(word, '=')+1:]
	if strings.ContainsAny(word, "%.~") {
		return false
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(word, "-_") {
		encoding = base64.RawURLEncoding
	}
	// Most words are ids, which their first bytes show.
	var first [minEncoded / 4 * 3]byte
	n, err := encoding.Decode(first[:], []byte(word[:min(len(word), minEncoded)]))
	if err != nil || !isPrintable(whole(first[:n])) {
		return false
	}
	decoded, err := encoding.DecodeString(word)
	return err == nil && isPrintable(decoded) && hasSecret(string(decoded))
}

// whole returns b without an incomplete character at its end.
func whole(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

func hasSecret(decoded string) bool {
	_, rules := plain(decoded, nil)
	return len(rules) > 0
}

// isPrintable reports whether b is text and not, for example, a tensor or an
// image.
func isPrintable(b []byte) bool {
	isControl := func(c byte) bool { return c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7F }
	return !slices.ContainsFunc(b, isControl) && utf8.Valid(b)
}
