// Package redact withholds secrets. Its rules are a list of key names and a
// list of value patterns; nothing here knows about telemetry.
package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// valueRule finds a secret in text by its form. Group 1, where there is one,
// stays. A text that has none of the hints, in lower case, is not searched:
// most texts hold no secret, and some are long.
type valueRule struct {
	name    string
	hints   []string
	pattern *regexp.Regexp
}

// assigned are the hints of assignedName.
var assigned = []string{"pass", "secret", "key", "token", "authorization"}

// assignedName matches the name of a secret in running text, with what may stand
// before it.
const assignedName = `(?:^|[^A-Za-z0-9])(?:[A-Za-z0-9]+[_-])*(?:password|passwd|passphrase|secret|secret[_-]?key|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|session[_-]?token|hf[_-]token|authorization)`

var valueRules = []valueRule{
	{"pem", []string{"private key"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)},
	{"jwt", []string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`)},
	{"aws_key", []string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"github_token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"huggingface_token", []string{"hf_"}, regexp.MustCompile(`\bhf_[A-Za-z0-9]{16,}`)},
	{"api_key", []string{"sk-"}, regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`)},
	{"google_key", []string{"aiza"}, regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`)},
	{"payment_key", []string{"k_live_", "k_test_"}, regexp.MustCompile(`\b[rs]k_(?:live|test)_[A-Za-z0-9]{10,}`)},
	{"gitlab_token", []string{"glpat-"}, regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`)},
	{"registry_token", []string{"npm_", "pypi-"}, regexp.MustCompile(`\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})`)},
	{"google_token", []string{"ya29."}, regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{16,}`)},
	{"slack_token", []string{"xox"}, regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{8,}`)},
	{"authorization", []string{"authorization"}, regexp.MustCompile(`(?i)(authorization["']?\s*[=:]\s*["']?[A-Za-z0-9-]+\s+)[^\r\n"'<]{3,}`)},
	{"authorization", []string{"bearer", "basic", "apikey"}, regexp.MustCompile(`(?i)\b((?:bearer|basic|apikey)\s+)[A-Za-z0-9._~+/=-]{8,}`)},
	{"url_password", []string{"://"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"']*:)[^\s/@"']+@`)},
	{"signed_url", []string{"?", "&"}, regexp.MustCompile(`(?i)([?&](?:x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|signature|sig|access_token|token|api_?key|key)=)[^&\s"'<>]+`)},
	// A value in quotes ends with them, and one in JSON inside of JSON with an
	// escaped one.
	{"assignment", assigned, regexp.MustCompile(`(?i)(` + assignedName + `["']?\s*[=:]\s*")(?:[^"\\]|\\.)+`)},
	{"assignment", assigned, regexp.MustCompile(`(?i)(` + assignedName + `["']?\s*[=:]\s*')(?:[^'\\]|\\.)+`)},
	{"assignment", assigned, regexp.MustCompile(`(?i)(` + assignedName + `\\+["']\s*[=:]\s*\\+["'])[^"'\\]+`)},
	{"assignment", assigned, regexp.MustCompile(`(?i)(` + assignedName + `["']?\s*[=:]\s*["']?)[^\s"',;&}\])<]{3,}`)},
	{"assignment", []string{"_token="}, regexp.MustCompile(`((?:^|[^A-Za-z0-9_])(?:[A-Z][A-Z0-9]*_)+TOKEN=["']?)[^\s"'<]{3,}`)},
	{"sql", []string{"identified", "password"}, regexp.MustCompile(`(?i)(\b(?:identified\s+by|password)\s+')[^']+`)},
	// A comparison or an assignment in a statement, whose column has a secret's name.
	{"sql", []string{"token", "secret", "pass", "pwd", "key", "credential"}, regexp.MustCompile(`(?i)(\b(?:where|and|or|set|on)\s+["\[` + "`" + `a-z0-9_.]*(?:token|secret|password|passwd|pwd|api_?key|credentials?)["\]` + "`" + `]?\s*(?:=|<>|!=|like|in\s*\()\s*')(?:[^']|'')+`)},
	{"quoted_token", []string{"token"}, regexp.MustCompile(`(?i)(["'](?:(?:access|api|auth|bearer|bot|csrf|github|gitlab|hf|id|refresh|session|slack)[_-]?)?token["']\s*:\s*["'])[^"'<]{3,}`)},
	{"cookie", []string{"cookie"}, regexp.MustCompile(`(?i)(\bcookies?["']?\s*[=:]\s*["']?)[^\r\n"'<]{3,}`)},
	{"argument", []string{"-"}, regexp.MustCompile(`(?i)(--?(?:[a-z0-9]+[_-])*(?:password|passwd|secret|api[_-]?key|access[_-]?key|token)[ =]")[^"]+`)},
	{"argument", []string{"-"}, regexp.MustCompile(`(?i)(--?(?:[a-z0-9]+[_-])*(?:password|passwd|secret|api[_-]?key|access[_-]?key|token)[ =]')[^']+`)},
	{"argument", []string{"-"}, regexp.MustCompile(`(?i)(--?(?:[a-z0-9]+[_-])*(?:password|passwd|secret|api[_-]?key|access[_-]?key|token)[ =]["']?)[^\s"'<]{3,}`)},
}

// SecretKey reports whether a value is secret by the name that it stands
// under. Identifiers of sessions, counts of tokens and the vocabulary's
// special tokens are not.
func SecretKey(key string) bool {
	words := split(key)
	for i, w := range words {
		switch w {
		case "password", "passwd", "pwd", "passphrase", "secret", "secrets", "credential", "credentials",
			"authorization", "cookie", "cookies", "apikey", "apikeys", "privatekey", "accesskey":
			return true
		case "key", "keys":
			if i > 0 {
				switch words[i-1] {
				case "api", "access", "private", "secret", "encryption", "signing", "account":
					return true
				}
			}
		}
	}
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "auth":
		return true
	case "token":
		return len(words) == 1 || !vocabularyToken[words[len(words)-2]]
	}
	return false
}

// vocabularyToken lists the words before "token" that make it a part of a
// text or a number, and not a credential.
var vocabularyToken = map[string]bool{
	"eos": true, "bos": true, "pad": true, "unk": true, "sep": true, "cls": true, "mask": true,
	"special": true, "additional": true, "image": true, "audio": true, "video": true, "start": true,
	"end": true, "stop": true, "next": true, "prev": true, "previous": true, "first": true, "last": true,
	"new": true, "per": true, "prompt": true, "completion": true, "decoder": true, "forced": true,
	"input": true, "output": true, "to": true, "by": true, "time": true, "s": true,
}

// split takes a key apart at everything that is no letter or digit and at
// changes from lower to upper case.
func split(key string) []string {
	var words []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	lower := false
	for _, r := range key {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			lower = false
			continue
		}
		if unicode.IsUpper(r) && lower {
			flush()
		}
		lower = unicode.IsLower(r)
		word.WriteRune(unicode.ToLower(r))
	}
	flush()
	return words
}
