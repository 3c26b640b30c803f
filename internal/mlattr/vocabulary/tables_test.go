package vocabulary

import (
	"slices"
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestTablesAreGenerated holds the tables in Go against the files that people write.
func TestTablesAreGenerated(t *testing.T) {
	attributes := golden.YAML[[]Attribute](t, "canonical.yaml")
	slices.SortFunc(attributes, byName)
	golden.Variables(t, "generated_tables.go", "vocabulary", "canonical.yaml and general.yaml",
		golden.Variable{
			Name: "canonical", Value: attributes,
			Comment: "are the attributes that a client may send, too, sorted by name. Attributes that only\n// components of this project write are not among them.",
		},
		golden.Variable{Name: "general", Comment: "are the general rules.", Value: golden.YAML[generalTable](t, "general.yaml")},
	)
}
