package content

import "strings"

// markStart is the beginning of the text that replaces a secret.
const markStart = "<REDACTED:"

// Mark returns the replacement of a secret that rule found.
func Mark(rule string) string { return markStart + rule + ">" }

// Redact returns text with each secret replaced by the Mark of its rule, and
// the names of these rules, one for each replacement. It is idempotent. It
// takes time linear in the length of text, about 30 ns a byte and up to ten
// times that for hostile text. A text without secrets is not copied.
func Redact(text string) (string, []string) {
	return withoutEncoded(plain(text, nil))
}

// plain replaces secrets that are not encoded.
func plain(text string, rules []string) (string, []string) {
	if len(text) < minValue {
		return text, rules
	}
	return withoutAssigned(withoutTokens(withoutContexts(text, rules)))
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
