package payload

import (
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// OfCode makes what can be replayed of code that a model wrote. Exactly one
// of its results is set.
func OfCode(code string, maxBytes int) (*Call, Reason) {
	switch {
	case len(code) > maxBytes:
		return nil, TooLarge
	case strings.TrimSpace(code) == "":
		return nil, Invalid
	}
	return &Call{
		Tree: jsontree.Of("code", code),
		// No two texts of a model are the same, so the group is not told by them.
		Function: "generated code",
		Lossy:    !utf8.ValidString(code),
		Weight:   2 * len(code),
	}, ""
}
