package content

import (
	_ "embed"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

//go:embed words.txt
var listedWords string

//go:embed texts.txt
var listedTexts string

// maxName is the length in bytes above which a name is replaced unread.
const maxName = 255

// names holds the known names of spans, events and scopes.
type names struct {
	// known has names and words of names. One that ends in "#" matches any
	// digits in its place.
	known map[string]struct{}
	// kept are the prefixes that the user lists.
	kept []string
	// texts are the free texts of this project's components.
	texts map[string]struct{}
}

func newNames(cfg *Config) *names {
	n := &names{known: linesOf(listedWords), texts: linesOf(listedTexts)}
	for _, entry := range cfg.Names {
		if start, all := strings.CutSuffix(entry, "*"); all {
			n.kept = append(n.kept, start)
		} else {
			n.known[entry] = struct{}{}
		}
	}
	return n
}

func linesOf(list string) map[string]struct{} {
	lines := make(map[string]struct{})
	for line := range strings.Lines(list) {
		lines[strings.TrimSuffix(line, "\n")] = struct{}{}
	}
	return lines
}

// has reports whether a name is on a list.
func (n *names) has(name string) bool {
	if _, ok := n.known[name]; ok {
		return true
	}
	for _, start := range n.kept {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	end := len(name)
	for end > 0 && isDigit(name[end-1]) {
		end--
	}
	if end == len(name) || len(name)-end > maxDigits || end == 0 || end > 64 {
		return false
	}
	var numbered [65]byte
	_, ok := n.known[string(append(append(numbered[:0], name[:end]...), '#'))]
	return ok
}

// body reports whether a text is a log message of one of this project's
// components.
func (n *names) body(text string) bool {
	if rest, ok := strings.CutPrefix(text, "XID "); ok {
		if code, meaning, ok := strings.Cut(rest, ": "); ok && isNumber(code) {
			text = meaning
		}
	}
	_, ok := n.texts[text]
	return ok
}

// repeated returns how many bytes of text, up to the end of a word, repeat the
// text of a kept attribute.
func repeated(text string, attributes pcommon.Map) int {
	longest := 0
	for _, value := range attributes.All() {
		if value.Type() != pcommon.ValueTypeStr {
			continue
		}
		said := value.Str()
		if len(said) > longest && strings.HasPrefix(text, said) && (len(text) == len(said) || text[len(said)] == ' ') {
			longest = len(said)
		}
	}
	return longest
}
