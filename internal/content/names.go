package content

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed words.txt
var listedWords string

//go:embed texts.txt
var listedTexts string

// Names holds the known names of spans, events and scopes.
type Names struct {
	// known has names and words of names. One that ends in "#" matches any
	// digits in its place.
	known map[string]bool
	// kept are the prefixes that the user lists.
	kept []string
	// texts are the free texts of this project's components.
	texts map[string]bool
}

// NewNames returns the generated lists with the names that a user lists. One that ends
// in "*" stands for all names with that prefix.
func NewNames(listed []string) *Names {
	n := &Names{known: linesOf(listedWords), texts: linesOf(listedTexts)}
	for _, entry := range listed {
		if start, all := strings.CutSuffix(entry, "*"); all {
			n.kept = append(n.kept, start)
		} else {
			n.known[entry] = true
		}
	}
	return n
}

// Has reports whether a name is on a list.
func (n *Names) Has(name string) bool {
	if n.known[name] || beginsWithAny(name, n.kept) {
		return true
	}
	end := len(strings.TrimRight(name, "0123456789"))
	if end == len(name) || len(name)-end > maxDigits || end == 0 || end > 64 {
		return false
	}
	var numbered [65]byte
	return n.known[string(append(append(numbered[:0], name[:end]...), '#'))]
}

// HasText reports whether a text is a log message of one of this project's
// components.
func (n *Names) HasText(text string) bool {
	if rest, ok := strings.CutPrefix(text, "XID "); ok {
		if code, meaning, ok := strings.Cut(rest, ": "); ok && isNumber(code) {
			text = meaning
		}
	}
	return n.texts[text]
}

//go:embed conclusions.txt
var listedConclusions string

var conclusionWords = sync.OnceValue(func() map[string]bool { return linesOf(listedConclusions) })

// maxConclusion limits a text of ml_metrics, in bytes, maxNames the words of names in it:
// ml_metrics names at most four ranks, hosts or runs at a time.
const maxConclusion, maxNames = 512, 4

// IsConclusion reports whether a text is what ml_metrics says of a problem: its own words
// and figures, and between them names that together have the form of a label. Whether
// ml_metrics has written the text, the caller knows.
func IsConclusion(text string) bool {
	if len(text) > maxConclusion {
		return false
	}
	var names []string
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, "(),.:;[]#")
		if !conclusionWords()[word] && strings.Trim(word, "0123456789.:+-%") != "" {
			names = append(names, word)
		}
	}
	return len(names) <= maxNames && isLabel(strings.Join(names, " ")) && !longDigits(text)
}
