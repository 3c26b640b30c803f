package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"
)

// encodedRule is the name of the rule for what is a secret once it is decoded.
const encodedRule = "encoded"

const (
	// minEncoded is the length below which a word is not tried: "password=x"
	// takes sixteen characters of base64.
	minEncoded = 16
	// maxEncoded is the length above which it is not: what comes in such
	// lengths is data.
	maxEncoded = 64 << 10
)

// withoutEncoded replaces words that are a secret in base64 or in a URL's
// encoding. They are decoded once.
func withoutEncoded(s string) string {
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s); {
		if !isWord(s[i]) {
			i++
			continue
		}
		end := i
		for end < len(s) && isWord(s[end]) {
			end++
		}
		if isEncodedSecret(s[i:end]) {
			b.WriteString(s[copied:i])
			b.WriteString(mark(encodedRule))
			copied = end
		}
		i = end
	}
	if copied == 0 {
		return s
	}
	b.WriteString(s[copied:])
	return b.String()
}

// isWord reports whether c occurs in base64 or in a URL's encoding.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("+/=_-%.~", c) >= 0
}

func isEncodedSecret(word string) bool {
	if len(word) < minEncoded || len(word) > maxEncoded {
		return false
	}
	if strings.Contains(word, "%") {
		decoded, err := url.QueryUnescape(word)
		return err == nil && isSecret(decoded)
	}
	// Padding is left out as often as not.
	word = strings.TrimRight(word, "=")
	if strings.ContainsAny(word, "=%.~") {
		return false
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(word, "-_") {
		encoding = base64.RawURLEncoding
	}
	decoded, err := encoding.DecodeString(word)
	return err == nil && isPrintable(decoded) && isSecret(string(decoded))
}

func isSecret(decoded string) bool {
	var r Redactor
	return r.plain("", decoded) != decoded
}

// isPrintable tells text from the bytes of a tensor or an image.
func isPrintable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return utf8.Valid(b)
}
