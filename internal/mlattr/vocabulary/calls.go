package vocabulary

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Call returns which part of a call the span is, by the rule for its name, and
// the function where the name says it.
func (f *Facts) Call() (part table.CallPart, function string) {
	if f.name == nil {
		return table.NoCall, ""
	}
	return f.name.Call, f.name.CallOf
}

// Queued reports whether the span lasts from when its work was accepted, so
// that it contains a wait. The work itself is a span below.
func (f *Facts) Queued() bool { return f.name != nil && f.name.Queued }

// WholeStep reports whether the span contains all of a training step.
func (f *Facts) WholeStep() bool { return f.name != nil && f.name.WholeStep }

var callKeys = func() (all table.CallKeys) {
	for _, t := range Tables() {
		for i, list := range t.Calls.Lists() {
			to := all.Lists()[i]
			*to = append(*to, *list...)
		}
	}
	return all
}()

// Calls returns the keys of all clients, in the order of the tables. The caller
// may change the lists.
func Calls() table.CallKeys {
	all := callKeys
	for _, list := range all.Lists() {
		*list = slices.Clone(*list)
	}
	return all
}

// IsCorrelation reports whether an attribute's key is one of
// CallKeys.Correlation. It costs next to nothing for any other key.
func IsCorrelation(key string) bool { return correlationKeys.has(key) }

var correlationKeys = keySetOf(callKeys.Correlation)

// RunsCode reports whether a span of this name runs code that a model wrote;
// see CallKeys.CodeSpans.
func RunsCode(name string) bool {
	return slices.ContainsFunc(callKeys.CodeSpans, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// keySet finds out whether a key is one of a few. It looks at a key only if its
// length is that of one of them.
type keySet struct {
	lengths uint64
	keys    []string
}

func keySetOf(keys []string) keySet {
	set := keySet{keys: keys}
	for _, key := range keys {
		set.lengths |= lengthBit(key)
	}
	return set
}

func (s *keySet) has(key string) bool {
	return s.lengths&lengthBit(key) != 0 && slices.Contains(s.keys, key)
}
