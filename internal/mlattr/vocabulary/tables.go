package vocabulary

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Tables returns every vocabulary in the order in which their rules are tried.
// The first and the last, those of launchers and of users, have no System: they
// are part of every Reader.
func Tables() []Vocabulary {
	tables := []Vocabulary{{Table: clients.Launchers()}}
	for i, table := range clients.All() {
		tables = append(tables, Vocabulary{table, 1 << i})
	}
	return append(tables, Vocabulary{Table: clients.Users()})
}

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
