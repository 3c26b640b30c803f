package content

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:generate go run ./allowlist allowlist ../../../.. .

//go:embed keys.txt
var listedKeys string

// keys maps attribute keys to the form that their text must have.
type keys struct {
	// exact has every listed key, so that one lookup decides most attributes.
	exact map[string]form
	// removed and kept are prefixes for keys that are not in exact. removed
	// takes precedence.
	removed, kept []string
}

// newKeys merges the generated list with the user's lists.
func newKeys(cfg *Config) (*keys, error) {
	k := &keys{exact: make(map[string]form)}
	for line := range strings.Lines(listedKeys) {
		key, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		f, ok := formNames[name]
		if !ok {
			return nil, fmt.Errorf("keys.txt: the form of %q is %q", key, name)
		}
		if f == removed && strings.HasSuffix(key, ".") {
			k.removed = append(k.removed, key)
			continue
		}
		k.exact[key] = f
	}
	for _, entry := range cfg.Keep {
		k.set(entry, anything)
	}
	for _, entry := range cfg.Remove {
		k.set(entry, removed)
	}
	// A key that is written out is meant before one that is not.
	for _, entry := range cfg.Keep {
		if !strings.HasSuffix(entry, "*") {
			k.exact[entry] = anything
		}
	}
	return k, nil
}

// set assigns a form to a key, or to all keys with a prefix.
func (k *keys) set(entry string, f form) {
	start, all := strings.CutSuffix(entry, "*")
	if !all {
		k.exact[entry] = f
		return
	}
	for key := range k.exact {
		if strings.HasPrefix(key, start) {
			k.exact[key] = f
		}
	}
	if f == removed {
		k.removed = append(k.removed, start)
		return
	}
	k.kept = append(k.kept, start)
	var others []string
	for _, prefix := range k.removed {
		if !strings.HasPrefix(prefix, start) {
			others = append(others, prefix)
		}
	}
	k.removed = others
}

// other returns the form of a key that is not in exact.
func (k *keys) other(key string) form {
	for _, prefix := range k.removed {
		if strings.HasPrefix(key, prefix) {
			return removed
		}
	}
	for _, prefix := range k.kept {
		if strings.HasPrefix(key, prefix) {
			return anything
		}
	}
	return unlisted
}

// credentials are words at the end of a key whose value is one, or a person's,
// even if it is a number.
var credentials = [...]string{
	"password", "passwd", "pwd", "passphrase", "secret", "api_key", "apikey", "api-key", "private_key", "privatekey",
	"access_token", "refresh_token", "id_token", "auth_token", "hf_token", "authorization", "cookie", "set-cookie",
	"pin", "otp", "ssn", "cvv", "cvc", "iban", "card", "card_number", "account_number", "phone", "phone_number",
	"birthday", "user", "user_id", "userid", "username",
}

// namesCredential reports whether the last word of a key is one of credentials.
func namesCredential(key string) bool {
	last := key[strings.LastIndexByte(key, '.')+1:]
	if strings.EqualFold(last, "token") { // and not time_to_first_token
		return true
	}
	for _, word := range credentials {
		if len(last) < len(word) {
			continue
		}
		start := len(last) - len(word)
		if strings.EqualFold(last[start:], word) && (start == 0 || !isAlpha(last[start-1]) && !isDigit(last[start-1])) {
			return true
		}
	}
	return false
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
		if start == 0 || !isAlpha(key[start-1]) || key[start] >= 'A' && key[start] <= 'Z' && key[start-1] >= 'a' {
			return true
		}
	}
	return false
}
