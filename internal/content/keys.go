package content

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

//go:embed keys.txt
var listedKeys string

// Keys maps attribute keys to the form that their text must have.
type Keys struct {
	// Exact has every listed key, so that one lookup decides most attributes.
	Exact map[string]Form
	// removed and kept are prefixes for keys that are not in Exact. removed
	// takes precedence.
	removed, kept []string
}

// listed are the keys of the generated list.
var listed = sync.OnceValue(func() *Keys {
	k := &Keys{Exact: make(map[string]Form)}
	for line := range strings.Lines(listedKeys) {
		key, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if form := formNames[name]; form == Removed && strings.HasSuffix(key, ".") {
			k.removed = append(k.removed, key)
		} else {
			k.Exact[key] = form
		}
	}
	return k
})

// NewKeys returns the generated list with the keys that a user keeps, whose text may
// be anything, and those that a user removes. An entry that ends in "*" stands for
// all keys with that prefix.
func NewKeys(keep, remove []string) *Keys {
	k := &Keys{Exact: maps.Clone(listed().Exact), removed: slices.Clone(listed().removed)}
	for _, entry := range keep {
		k.set(entry, Anything)
	}
	for _, entry := range remove {
		k.set(entry, Removed)
	}
	// A key that is written out is meant before one that is not.
	for _, entry := range keep {
		if !strings.HasSuffix(entry, "*") {
			k.Exact[entry] = Anything
		}
	}
	return k
}

// set assigns a form to a key, or to all keys with a prefix.
func (k *Keys) set(entry string, f Form) {
	start, all := strings.CutSuffix(entry, "*")
	if !all {
		k.Exact[entry] = f
		return
	}
	for key := range k.Exact {
		if strings.HasPrefix(key, start) {
			k.Exact[key] = f
		}
	}
	if f == Removed {
		k.removed = append(k.removed, start)
		return
	}
	k.kept = append(k.kept, start)
	k.removed = slices.DeleteFunc(k.removed, func(prefix string) bool { return strings.HasPrefix(prefix, start) })
}

// Form returns the form of a key.
func (k *Keys) Form(key string) Form {
	if f := k.Exact[key]; f != Unlisted {
		return f
	}
	return k.Other(key)
}

// Other returns the form of a key that is not in Exact.
func (k *Keys) Other(key string) Form {
	switch {
	case beginsWithAny(key, k.removed):
		return Removed
	case beginsWithAny(key, k.kept):
		return Anything
	}
	return Unlisted
}

// KeepsUnlisted reports whether a text stays under a key that is not listed: a number,
// or an id if the key says that it is one.
func KeepsUnlisted(key, text string) bool {
	return (isNumber(text) || namesID(key) && isID(text)) && !IsPrivate(key)
}

// personal are last words of keys whose value is about a person, even if it is a
// number.
var personal = Words("pin otp ssn cvv cvc iban card phone birthday user userid username")

// IsPrivate reports whether a value of a key that is not listed is a credential, or a
// person's, even if it is a number.
func IsPrivate(key string) bool {
	var buffer [8]string
	words := split(buffer[:0], key[max(0, len(key)-maxKey):])
	if len(words) == 0 {
		return false
	}
	before, last := lastTwo(words)
	// In time_to_first_token a token is a part of a text, in new.token it may be a code.
	token := strings.EqualFold(key[strings.LastIndexByte(key, '.')+1:], "token")
	// In passWord, userName and APIkey a capital divides no words.
	whole := strings.ToLower(key[strings.LastIndexAny(key, "._-/:$")+1:])
	return token || personal[whole] || secretWord(whole) || isSecretName(words) ||
		personal[last] || last == "number" && (before == "account" || personal[before]) || last == "id" && before == "user"
}

// idWords end keys of ids.
var idWords = [...]string{"id", "uuid", "guid", "ulid", "hash", "sha1", "sha256", "md5", "digest", "commit", "revision", "fingerprint"}

// namesID reports whether the last word of a key is one of idWords.
func namesID(key string) bool {
	for _, word := range idWords {
		start := len(key) - len(word)
		if start < 0 || !strings.EqualFold(key[start:], word) {
			continue
		}
		// requestId and request_id are ids, paid is none.
		if start == 0 || !letterByte[key[start-1]] || key[start] >= 'A' && key[start] <= 'Z' && key[start-1] >= 'a' {
			return true
		}
	}
	return false
}

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
	before, ok := strings.CutSuffix(word, "key")
	return ok && beforeKey[before] || slices.ContainsFunc(secretWords, func(end string) bool { return strings.HasSuffix(word, end) })
}

// secretEnd reports whether the last words identify a secret, for words that do
// so only at the end of a name.
func secretEnd(words []string) bool {
	before, last := lastTwo(words)
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
func IsSecret(name, value string) bool { return isCredential(name, value) && IsSecretKey(name) }

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
	_, last := lastTwo(split(buffer[:0], name))
	return last
}

// lastTwo returns the last word, and the one before it, of which each may be "".
func lastTwo(words []string) (before, last string) {
	switch n := len(words); n {
	case 0:
		return "", ""
	case 1:
		return "", words[0]
	default:
		return words[n-2], words[n-1]
	}
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
