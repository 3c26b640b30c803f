package vocabulary

import (
	"slices"
	"sync"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Tables returns every vocabulary in the order in which their rules are tried.
// The first and the last, those of launchers and of users, have no System: they
// are part of every Reader. Callers must not change what the tables refer to.
func Tables() []Vocabulary { return slices.Clone(tables()) }

var tables = sync.OnceValue(func() []Vocabulary {
	all := []Vocabulary{{Table: clients.Launchers()}}
	for i, table := range clients.All() {
		all = append(all, Vocabulary{table, 1 << i})
	}
	return append(all, Vocabulary{Table: clients.Users()})
})

// collectKeys concatenates a list of all tables, in their order, without
// duplicates.
func collectKeys(list func(*table.Table) []string) (keys []string) {
	seen := make(map[string]bool)
	for _, t := range Tables() {
		for _, key := range list(&t.Table) {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}
