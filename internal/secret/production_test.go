package secret

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The stock redaction processor has regular expressions alone, each tried on
// each value, and masks all of a match. What follows writes the rules so.

// valuePatterns returns its blocked_values.
func valuePatterns() []string {
	var all []string
	for _, f := range forms {
		all = append(all, f.pattern.String())
	}
	all = append(all, tokenPatterns()...)
	return append(all, namePatterns()...)
}

// tokenPatterns has the prefixes of all tokens in two patterns: a program of more
// than 500 instructions is run by the slowest of Go's machines.
func tokenPatterns() []string {
	var prefixes []string
	for _, t := range tokens {
		for _, p := range strings.Fields(t.prefixes) {
			prefixes = append(prefixes, regexp.QuoteMeta(p))
		}
	}
	slices.Sort(prefixes)
	half := len(prefixes) / 2
	tail := `)[A-Za-z0-9_.+/=-]{16,}`
	return []string{`\b(?:` + strings.Join(prefixes[:half], "|") + tail, `\b(?:` + strings.Join(prefixes[half:], "|") + tail}
}

const (
	// between stands between a name and its value: =, :, =>, ", " and >.
	between = `(?:\\*["'])?\]?\s*(?:[:?.]*=+>?|:|,\s*b?["']|>)\s*`
	// assigned is a value in quotes, in escaped quotes or without.
	assigned = `[bu]?(?:"(?:[^"\\]|\\.){3,}|'(?:[^'\\]|\\.){3,}|\\+["'][^"'\\]{3,}|[^\s"'\\,;&}\])<]{3,})`
	// line is a value that ends with its line or its quotes.
	line = `[bu]?(?:"(?:[^"\\]|\\.){3,}|'(?:[^'\\]|\\.){3,}|\\+["'][^"'\\]{3,}|[^\r\n\\"'<]{3,})`
	// random is a value with a letter and, behind it, a digit. A bare token is
	// one only so: others are pieces of text and counts.
	random = `(?:\\*["'])?[0-9._~+/=-]*[A-Za-z][A-Za-z._~+/=-]*[0-9][A-Za-z0-9._~+/=-]{3,}`
	// qualified is what may follow a secret's name.
	qualified = `(?:[_.-]?(?:access[_.-]?)?(?:key|value|base|confirmation)|s|[0-9])*`
)

func namePatterns() []string {
	words := `(?:` + either(set(strings.Join(secretWords, " ")+" apikey")) + `|\b(?:creds|jwt|bearer|auth))` + qualified
	keys := either(beforeKey) + `[_.-]?key` + qualified
	token := `token` + qualified
	named := `(?i)["'](?:name|key)\\*["']\s*:\s*\\*["'][\w.-]*(?:key|token|password|pass|pwd|secret)\\*["']\s*,\s*\\*["']value\\*["']\s*:\s*\\*["'][^"'\\]{3,}`
	flag := `(?i)--[a-z0-9_.-]*(?:passw(?:or)?d|pwd|secret|[_.-]key|apikey|token)(?:\\*["']\s*,)?\s+\\*["']?[^\s"'\\<-][^\s"'\\<]{2,}`
	return []string{
		`(?i)(?:authorization|\bcookies?)` + between + line,
		`(?i)` + words + between + assigned,
		`(?i)` + keys + between + assigned,
		`(?i)` + token + between + random,
		`(?i)(?:\b|[_.-])pass(?:=|["']:\s*)["']?[^\s"'0-9][^\s"'<]{2,}`,
		flag, named,
	}
}

func either(words map[string]bool) string {
	return `(?:` + strings.Join(slices.Sorted(maps.Keys(words)), "|") + `)`
}
