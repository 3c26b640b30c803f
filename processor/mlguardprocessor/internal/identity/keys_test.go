package identity

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestKeysAreGenerated holds the table in Go against the file that people write.
func TestKeysAreGenerated(t *testing.T) {
	kinds := make(map[string]kind)
	for name, keys := range golden.YAML[map[string][]string](t, "keys.yaml") {
		at := slices.Index(kindNames[:], name)
		require.Positive(t, at, name)
		for _, key := range keys {
			kinds[key] = kind(at)
		}
	}
	golden.Variables(t, "generated_keys.go", "identity", "keys.yaml",
		golden.Variable{Name: "kindsOfKeys", Comment: "are the kinds of labels. Any other label is of kindLabel.", Value: kinds})
}
