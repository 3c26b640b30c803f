package content

import (
	"strings"
	"unicode"
)

// maxKey is the number of bytes of a name, from its end, that are read.
const maxKey = 256

// IsSecretKey reports whether a value with this name is secret, such as "db.password",
// "clientSecret", "X-Api-Key" or "--hf-token". Session ids, token counts and
// the special tokens of a vocabulary are not secret.
func IsSecretKey(name string) bool {
	// The end of a long name says what it is.
	var buffer [8]string
	return isSecretName(split(buffer[:0], name[max(0, len(name)-maxKey):]))
}

// isSecretName reports whether the words of a name are those of a secret.
func isSecretName(words []string) bool {
	words = withoutNumber(words)
	if len(words) == 0 || describes[words[len(words)-1]] {
		return false
	}
	for i, word := range words {
		if secretWord(word) || i > 0 && strings.TrimSuffix(word, "s") == "key" && beforeKey[words[i-1]] {
			return true
		}
	}
	return secretEnd(words)
}

// withoutNumber removes the number at the end of a name: token1, api_key_2.
func withoutNumber(words []string) []string {
	if len(words) == 0 {
		return words
	}
	last := len(words) - 1
	words[last] = strings.TrimRight(words[last], "0123456789")
	if words[last] == "" {
		return words[:last]
	}
	return words
}

// secretWord reports whether one word identifies a secret: "passwd", or
// "PGPASSWORD", whose prefix is not separated.
func secretWord(word string) bool {
	switch word {
	case "creds", "cookie", "cookies", "jwt":
		return true
	}
	if before, ok := strings.CutSuffix(word, "pass"); ok && beforePass[before] {
		return true
	}
	word = strings.TrimSuffix(word, "s")
	for _, end := range secretWords {
		if strings.HasSuffix(word, end) {
			return true
		}
	}
	before, ok := strings.CutSuffix(word, "key")
	return ok && beforeKey[before]
}

// secretEnd reports whether the last words identify a secret, for words that do
// so only at the end of a name.
func secretEnd(words []string) bool {
	last := words[len(words)-1]
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch last {
	case "auth", "bearer":
		return true
	case "pass":
		return before == "" || beforePass[before]
	case "token":
		return !vocabularyToken[before]
	case "tokens":
		return beforeTokens[before]
	case "value":
		return before == "token" && (len(words) == 2 || !vocabularyToken[words[len(words)-3]])
	}
	before, ok := strings.CutSuffix(strings.TrimSuffix(last, "s"), "token")
	return ok && beforeTokens[before]
}

// IsSecret reports whether value is a secret: IsSecretKey(name) is true, and value is not
// empty, a switch, a placeholder or another secret's name. A number that is
// called a token or pass is a count or an index, and not secret.
func IsSecret(name, value string) bool {
	return isCredential(name, value) && IsSecretKey(name)
}

// isCredential reports whether value can be a secret, given that name is a
// secret's.
func isCredential(name, value string) bool {
	if value == "" || isMark(value) || len(value) < maxCount && noValues[strings.ToLower(value)] {
		return false
	}
	digit, other := false, false
	for i := range len(value) {
		c := value[i]
		digit = digit || c >= '0' && c <= '9'
		other = other || (c < '0' || c > '9') && c != '.' && c != '-' && c != '+'
	}
	if digit && !other && len(value) < maxCount {
		end := lastWord(name)
		return end != "token" && end != "tokens" && end != "pass" && end != "auth"
	}
	// A value that is called only "token" is often a part of a text.
	if !digit && len(value) < 20 && strings.EqualFold(name, "token") {
		return false
	}
	return true
}

// maxCount is the number of digits from which a number is no longer a count or
// an index.
const maxCount = 16

// isMark reports whether a value is a replacement or a placeholder of a secret:
// <REDACTED:key>, ****, ..., ${TOKEN}, $(cat token), {{ token }}.
func isMark(value string) bool {
	if len(value) < 2 || len(value) > maxName {
		return false
	}
	switch value[0] {
	case '<':
		return strings.IndexByte(value, '>') == len(value)-1
	case '$', '{', '%':
		return strings.ContainsAny(value[1:2], "{([") || strings.Trim(value[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
	case '*', '.':
		return strings.Trim(value, value[:1]) == ""
	}
	return strings.HasPrefix(value, "[REDACTED")
}

func lastWord(name string) string {
	var buffer [8]string
	words := split(buffer[:0], name)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// split appends the words of a name to words, in lower case. A word ends at any
// character that is no letter or digit, at a change from lower to upper case,
// and before the last of several capitals that a small letter follows:
// APIToken.
func split(words []string, name string) []string {
	start, previous, lower, upper := -1, -1, false, false
	flush := func(end int) {
		if start >= 0 {
			words = append(words, strings.ToLower(name[start:end]))
			start = -1
		}
	}
	for i, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush(i)
			lower, upper = false, false
			continue
		}
		switch {
		case lower && unicode.IsUpper(r):
			flush(i)
		case upper && unicode.IsLower(r) && previous > start:
			flush(previous)
			start = previous
		}
		if start < 0 {
			start = i
		}
		lower, upper, previous = unicode.IsLower(r), unicode.IsUpper(r), i
	}
	flush(len(name))
	return words
}
