package vocabulary

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// System is a client's vocabulary, or a set of several as a bit mask. Zero is
// none.
type System uint64

// Vocabulary is the table of a client with its bit.
type Vocabulary struct {
	table.Table
	// System is the client's own bit. Zero means that the table holds for every
	// client.
	System System
}

// AllSystems is every vocabulary.
const AllSystems System = 1<<clients.Count - 1

// systemNames are the names of the bits of a System, from the lowest.
var systemNames = func() (names []string) {
	for _, t := range Tables() {
		if t.System != 0 {
			names = append(names, t.Name)
		}
	}
	return names
}()

// SystemNames returns what ParseSystem accepts, in the tables' order.
func SystemNames() []string { return append([]string(nil), systemNames...) }

// ParseSystem returns the vocabulary of a name. It returns false for an unknown
// name.
func ParseSystem(name string) (System, bool) {
	at := slices.Index(systemNames, name)
	if at < 0 {
		return 0, false
	}
	return 1 << at, true
}
