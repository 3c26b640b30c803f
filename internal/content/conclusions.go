package content

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed conclusions.txt
var listedConclusions string

var conclusionWords = sync.OnceValue(func() map[string]struct{} { return linesOf(listedConclusions) })

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
		word = strings.Trim(word, "(),.:;")
		if _, own := conclusionWords()[word]; !own && strings.Trim(word, "0123456789.:+-%") != "" {
			names = append(names, word)
		}
	}
	return len(names) <= maxNames && isLabel(strings.Join(names, " ")) && !longDigits(text)
}
