package content

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
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
	for _, prefix := range k.removed {
		if strings.HasPrefix(key, prefix) {
			return Removed
		}
	}
	for _, prefix := range k.kept {
		if strings.HasPrefix(key, prefix) {
			return Anything
		}
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
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
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
