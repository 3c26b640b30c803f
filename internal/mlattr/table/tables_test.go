package table

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestTablesAreGenerated holds the table in Go against the file that people write.
func TestTablesAreGenerated(t *testing.T) {
	golden.Variables(t, "generated_tables.go", "table", "measures.yaml",
		golden.Variable{Name: "measures", Comment: "are the measures and their units.", Value: golden.YAML[measureTable](t, "measures.yaml")})
}
