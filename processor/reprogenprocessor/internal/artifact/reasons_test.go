package artifact

import (
	"testing"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestReasonsAreGenerated holds the sentences in Go against the file that people write.
func TestReasonsAreGenerated(t *testing.T) {
	golden.Variables(t, "generated_reasons.go", "artifact", "reasons.yaml",
		golden.Variable{
			Name: "reasons", Comment: "are sentences about why a failure cannot be replayed.",
			Value: golden.YAML[map[string]string](t, "reasons.yaml"),
		})
}
