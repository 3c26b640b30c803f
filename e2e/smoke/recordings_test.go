package smoke

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Each component tests with copies of what the examples recorded. Whoever
// records again has to renew them all.
func TestRecordingsAreCopiedToTheComponents(t *testing.T) {
	for _, component := range []string{
		"processor/mlenrichprocessor", "processor/reprogenprocessor", "connector/mlmetricsconnector",
	} {
		copies, err := filepath.Glob(harness.Path(filepath.FromSlash(component), "testdata", "recordings", "*", "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, copies, "%s has no recordings", component)
		recordings, err := filepath.Glob(harness.Path("examples", "*", "recording", "traces.json"))
		require.NoError(t, err)
		for _, file := range recordings {
			client := filepath.Base(filepath.Dir(filepath.Dir(file)))
			assert.FileExists(t, harness.Path(filepath.FromSlash(component), "testdata", "recordings", client, "traces.json"),
				"run examples/record.py --copy")
		}
		for _, file := range copies {
			client := filepath.Base(filepath.Dir(file))
			recorded, err := os.ReadFile(harness.Path("examples", client, "recording", filepath.Base(file)))
			require.NoError(t, err)
			copied, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(recorded, copied), "%s differs from what was recorded: run examples/record.py --copy", file)
		}
	}
}

// home matches folders that belong to somebody, other than the one that
// stands for them.
var home = regexp.MustCompile(`/root\b|/Users/|/home/(?:[^u]|u[^s])`)

// A recording must not tell who made it where. Names of the machine are known
// to examples/record.py alone, which replaces them.
func TestRecordingsAreScrubbed(t *testing.T) {
	recordings, err := filepath.Glob(harness.Path("examples", "*", "recording", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, recordings)
	for _, file := range recordings {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(text), 100*1024, "%s is too large to be read", file)
		assert.Empty(t, home.Find(text), file)
	}
}
