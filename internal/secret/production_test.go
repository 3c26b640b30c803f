package secret

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// tokenPatterns has the prefixes of all tokens in two patterns, by what follows
// them: a program of more than 500 instructions is run by the slowest of Go's
// machines.
func tokenPatterns() []string {
	var plain, others []string
	for _, t := range tokens {
		for p := range strings.FieldsSeq(t.prefixes) {
			switch t.of {
			case alnum, upper, lower, hex:
				plain = append(plain, regexp.QuoteMeta(p))
			default:
				others = append(others, regexp.QuoteMeta(p))
			}
		}
	}
	slices.Sort(plain)
	slices.Sort(others)
	return []string{
		`\b(?:` + strings.Join(plain, "|") + `)[A-Za-z0-9]{16,}`,
		`\b(?:` + strings.Join(others, "|") + `)[A-Za-z0-9_.+/=-]{16,}`,
	}
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
		named, flag,
		`(?i)(?:authorization|\bcookies?)` + between + line,
		`(?i)` + words + between + assigned,
		`(?i)` + keys + between + assigned,
		`(?i)` + token + between + random,
		`(?i)(?:\b|[_.-])pass(?:=|["']:\s*)["']?[^\s"'0-9][^\s"'<]{2,}`,
	}
}

func either(words map[string]bool) string {
	return `(?:` + strings.Join(slices.Sorted(maps.Keys(words)), "|") + `)`
}

// stock redacts as the stock processor does.
type stock []*regexp.Regexp

func stockPatterns() stock {
	var s stock
	for _, p := range valuePatterns() {
		s = append(s, regexp.MustCompile(p))
	}
	return s
}

func (s stock) redact(text string) string {
	for _, pattern := range s {
		text = pattern.ReplaceAllLiteralString(text, "****")
	}
	return text
}

// production.yaml has the patterns that are made from the rules.
func TestPatternsOfProduction(t *testing.T) {
	text, err := os.ReadFile(production)
	require.NoError(t, err)
	const start = "    summary: silent\n    blocked_values:\n"
	before, rest, found := strings.Cut(string(text), start)
	require.True(t, found, "production.yaml has no %q", start)
	var list strings.Builder
	for _, p := range valuePatterns() {
		list.WriteString("      - '" + strings.NewReplacer("'", "''", "$", "$$").Replace(p) + "'\n")
	}
	for strings.HasPrefix(rest, "      - ") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	want := before + start + list.String() + rest
	if *update {
		require.NoError(t, os.WriteFile(production, []byte(want), 0o600))
	}
	assert.Equal(t, want, string(text), "with -update this test writes the patterns")
}
