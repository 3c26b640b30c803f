package secret

import "strings"

// markStart begins what takes the place of a secret.
const markStart = "<REDACTED:"

// Mark returns what takes the place of a secret that rule found.
func Mark(rule string) string { return markStart + rule + ">" }

// Redact returns text with each secret replaced by the Mark of the rule that
// found it, and the names of these rules, one for each replacement. Redacting
// the result again changes nothing. It takes time linear in the length of text,
// some 30 ns a byte and up to ten times that of a hostile one; a text without
// secrets is not copied.
func Redact(text string) (string, []string) {
	return withoutEncoded(plain(text, nil))
}

// plain replaces what can be read as it stands.
func plain(text string, rules []string) (string, []string) {
	if len(text) < minValue {
		return text, rules
	}
	return withoutAssigned(withoutTokens(withoutForms(text, rules)))
}

// writer copies a text and leaves parts of it out.
type writer struct {
	text   string
	out    strings.Builder
	copied int
	rules  []string
}

// replace puts the mark of rule in the place of text[from:to]. The parts come in
// order.
func (w *writer) replace(from, to int, rule string) {
	w.out.WriteString(w.text[w.copied:from])
	w.out.WriteString(Mark(rule))
	w.copied = to
	w.rules = append(w.rules, rule)
}

// result returns the text, and the rules with those that replaced something.
func (w *writer) result() (string, []string) {
	if w.copied == 0 {
		return w.text, w.rules
	}
	w.out.WriteString(w.text[w.copied:])
	return w.out.String(), w.rules
}
