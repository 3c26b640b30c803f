package mlattr

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestTablesAreGenerated holds the table in Go against the file that people write.
func TestTablesAreGenerated(t *testing.T) {
	golden.Variables(t, "generated_tables.go", "mlattr", "problems.yaml", golden.Variable{
		Name: "Problems", Comment: "has the kinds of problems that ml_metrics concludes: pages first, then\n// tickets and marks.",
		Value: golden.YAML[[]ProblemKind](t, "problems.yaml"),
	})
}
