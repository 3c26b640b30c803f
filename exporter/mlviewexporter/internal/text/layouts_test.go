package text

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestLayoutsAreGenerated holds the layouts in Go against the file that people write.
func TestLayoutsAreGenerated(t *testing.T) {
	golden.Variables(t, "generated_layouts.go", "text", "layouts.yaml",
		golden.Variable{Name: "layouts", Comment: "are those of the sections, by their lists.", Value: golden.YAML[map[string]layout](t, "layouts.yaml")})
}
