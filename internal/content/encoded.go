package content

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"
)

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

// withoutEncoded replaces words that are a secret in base64 or URL encoding. It
// decodes once.
func withoutEncoded(text string, rules []string) (string, []string) {
	w := writer{text: text, rules: rules}
	w.encoded()
	return w.result()
}

func (w *writer) encoded() {
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
}

func isEncodedSecret(word string) bool {
	if len(word) < minEncoded || len(word) > maxEncoded {
		return false
	}
	if strings.Contains(word, "%") {
		decoded, err := url.QueryUnescape(word)
		return err == nil && hasSecret(decoded)
	}
	if isSecretBase64(word) {
		return true
	}
	decoded, err := url.QueryUnescape(word)
	return strings.Contains(word, "+") && err == nil && hasSecret(decoded)
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
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return utf8.Valid(b)
}
