package vocabulary

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// nameFilter rejects most names that no rule matches. The spans of a service
// that no vocabulary has must cost next to nothing.
type nameFilter struct {
	// first and last have true for the bytes that the other rules begin and end
	// with.
	first, last [256]bool
}

func (f *nameFilter) add(match table.Match, text string) {
	if text == "" {
		return // NewReader's tables have none
	}
	switch match {
	case table.Suffix:
		f.last[text[len(text)-1]] = true
	case table.Prefix, table.Numbered:
		f.first[text[0]] = true
	}
}

// passes reports whether a rule may match a name.
func (f *nameFilter) passes(name string) bool {
	if name == "" {
		return false
	}
	return f.first[name[0]] || f.last[name[len(name)-1]]
}
