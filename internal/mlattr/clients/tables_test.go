package clients

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestTablesAreGenerated holds the tables in Go against the files that people write.
func TestTablesAreGenerated(t *testing.T) {
	read := func(name string) table.Table { return golden.YAML[table.Table](t, name+".yaml") }
	var all [Count]table.Table
	for i, name := range order {
		all[i] = read(name)
	}
	golden.Variables(t, "generated_tables.go", "clients", "the *.yaml",
		golden.Variable{Name: "tables", Comment: "are those of the clients, in their order.", Value: all},
		golden.Variable{Name: "launchers", Comment: "is that of training launchers and schedulers.", Value: read("launchers")},
		golden.Variable{Name: "users", Comment: "is that of users of a program.", Value: read("users")},
	)
}
