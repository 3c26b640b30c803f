package content

import (
	_ "embed"
	"strconv"
	"strings"
)

// alphabet is a set of bytes, written like a character class of a regular
// expression without brackets.
type alphabet string

// listedTokens are the credentials with a known prefix, a line for those with the same
// rule: the rule, the bytes after the prefix, how many there are at least, or exactly
// after "=", and the prefixes.
//
//go:embed tokens.txt
var listedTokens string

// token is a kind of credential with a known prefix.
type token struct {
	rule, prefix string
	of           [256]bool
	// min is the minimal number of bytes after the prefix, and exact requires exactly
	// so many.
	min   int
	exact bool
}

// byFirst has the tokens by the first byte of their prefix.
var byFirst = func() (out [256][]token) {
	for line := range strings.Lines(listedTokens) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		length, exact := strings.CutPrefix(fields[2], "=")
		least, _ := strconv.Atoi(length)
		for _, prefix := range fields[3:] {
			out[prefix[0]] = append(out[prefix[0]], token{fields[0], prefix, alphabet(fields[1]).bytes(), least, exact})
		}
	}
	return out
}()

// bytes returns the set as a table.
func (a alphabet) bytes() (out [256]bool) {
	for i := 0; i < len(a); i++ {
		if i+2 < len(a) && a[i+1] == '-' {
			for c := a[i]; c <= a[i+2]; c++ {
				out[c] = true
			}
			i += 2
			continue
		}
		out[a[i]] = true
	}
	return out
}

// tokens replaces tokens. A token begins only where a word can begin.
func (w *writer) tokens() (string, []string) {
	for i := 0; i < len(w.text); i++ {
		if byFirst[w.text[i]] == nil || !begins(w.text, i) {
			continue
		}
		for _, p := range byFirst[w.text[i]] {
			if end := w.tokenEnd(p, i); end > 0 {
				w.replace(i, end, p.rule)
				i = end - 1
				break
			}
		}
	}
	return w.result()
}

// tokenEnd returns the end of the token that begins at i, or 0. If there is
// none, it reads at most min bytes.
func (w *writer) tokenEnd(p token, i int) int {
	text := w.text
	if !strings.HasPrefix(text[i:], p.prefix) {
		return 0
	}
	start := i + len(p.prefix)
	end := start
	for end < len(text) && p.of[text[end]] && (!p.exact || end-start <= p.min) {
		end++
	}
	w.read += end - start
	if end-start < p.min || p.exact && (end-start > p.min || end < len(text) && wordByte[text[end]]) {
		return 0
	}
	return end
}

var wordByte = alphabet("A-Za-z0-9_").bytes()

// begins reports whether a word can begin at i: after a byte that is not part
// of a word, or after an escaped line break or tab, as in JSON.
func begins(text string, i int) bool {
	if i == 0 || !wordByte[text[i-1]] {
		return true
	}
	return i > 1 && text[i-2] == '\\' && strings.IndexByte("nrt", text[i-1]) >= 0
}
