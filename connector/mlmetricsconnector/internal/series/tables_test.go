package series

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestTablesAreGenerated holds the table in Go against the file that people write.
func TestTablesAreGenerated(t *testing.T) {
	golden.Variables(t, "generated_all.go", "series", "series.yaml",
		golden.Variable{Name: "All", Comment: "is the table, indexed by ID.", Value: golden.YAML[[]Series](t, "series.yaml")})
}
