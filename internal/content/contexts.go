package content

import (
	_ "embed"
	"regexp"
	"strings"
)

// listedContexts are the contexts. The file says what its lines mean.
//
//go:embed contexts.txt
var listedContexts string

// context finds a secret by its context or its parts.
type context struct {
	rule    string
	hints   []string
	pattern func() *regexp.Regexp
}

const (
	schemeParameters = `[A-Za-z]+=(?:\\*"[^"\\\r\n]*\\*"|[^\s,"'\\]+)(?:,\s*[A-Za-z]+=(?:\\*"[^"\\\r\n]*\\*"|[^\s,"'\\]+))*`
	userInfo         = `://[^\s:/?#@"'<>\[]*:`
)

var contexts = func() (all []context) {
	parts := strings.NewReplacer("<parameters>", schemeParameters, "<user>", userInfo)
	for line := range strings.Lines(listedContexts) {
		if fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); line[0] != '#' {
			all = append(all, context{fields[0], strings.Split(fields[1], "|"), compiled(parts.Replace(fields[2]))})
		}
	}
	return all
}()

// hinted is a hint and the bits of its contexts.
type hinted struct {
	hint string
	bits uint64
}

// hintsByFirst has the hints by their first byte.
var hintsByFirst = func() (out [256][]hinted) {
	for i, f := range contexts {
		for _, h := range f.hints {
			out[h[0]] = append(out[h[0]], hinted{h, 1 << i})
		}
	}
	return out
}()

// withoutContexts replaces the secrets that the contexts find. It searches for all
// hints in one pass.
func withoutContexts(text string, rules []string) (string, []string) {
	found := uint64(0)
	for i := range len(text) {
		for _, h := range hintsByFirst[text[i]] {
			if strings.HasPrefix(text[i:], h.hint) {
				found |= h.bits
			}
		}
	}
	for i := range contexts {
		if found&(1<<i) != 0 {
			text, rules = contexts[i].replace(text, rules)
		}
	}
	return text, rules
}

func (f *context) replace(text string, rules []string) (string, []string) {
	w := writer{text: text, rules: rules}
	for _, at := range f.pattern().FindAllStringSubmatchIndex(text, -1) {
		from, to := at[0], at[1]
		if len(at) > 2 && at[3] >= 0 {
			from = at[3]
		}
		// The host after a password remains readable.
		if text[to-1] == '@' {
			to--
		}
		if !isMark(text[from:to]) {
			w.replace(from, to, f.rule)
		}
	}
	return w.result()
}
