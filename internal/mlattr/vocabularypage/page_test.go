package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestPageIsGeneratedFromTheTables(t *testing.T) {
	committed, err := os.ReadFile("../../../docs/vocabulary.md")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "vocabulary.md")
	require.NoError(t, run([]string{"../names.go", file}))
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(page), string(committed), "run go generate")

	for _, table := range mlattr.Tables() {
		assert.NotEmpty(t, table.Title, table.Name)
		assert.Contains(t, string(page), "\n### "+table.Title+"\n")
		for _, aliases := range [][]mlattr.Alias{table.Resource, table.Span, table.Point} {
			for _, alias := range aliases {
				assert.Contains(t, string(page), "| `"+alias.Source+"` | `"+alias.Canonical+"` |")
			}
		}
		for _, metric := range table.Metrics {
			assert.Contains(t, string(page), "| `"+metric.Source+"` | `"+metric.Measure+"` |")
		}
	}
	for line := range strings.SplitSeq(string(page), "\n") {
		assert.NotContains(t, line, "||")
	}
}

// TestLabelsDiffer shows that no two canonical attributes are one label.
func TestLabelsDiffer(t *testing.T) {
	keys := make(map[string]string)
	for _, a := range mlattr.Attributes() {
		assert.Regexp(t, `^[a-z][a-z0-9]*([._][a-z0-9]+)*\.?$`, a.Name)
		label := prometheusLabel(a.Name)
		assert.Empty(t, keys[label], a.Name)
		keys[label] = a.Name
	}
}

func TestMeaning(t *testing.T) {
	values := map[string]string{"RunID": "ml.run.id"}
	assert.Equal(t, "Identifies one run.", meaning("RunID", "RunID identifies\none run.\n", values))
	assert.Equal(t, "The step's number.", meaning("Step", "Step is the step's number.\n", values))
	assert.Equal(t, "True where `ml.run.id` is a guess.", meaning("RunInferred", "RunInferred is true where RunID is a guess.\n", values))
	values["SideClient"], values["SideServer"] = "client", "server"
	assert.Equal(t, "The side: `client`, `server`.", meaning("Side", "Side is the side: see the Side values.\n", values))
	assert.Empty(t, meaning("Step", "Steps of a run.\n", values))
	assert.Empty(t, meaning("Step", "", values))
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	require.ErrorContains(t, run(nil), "want two arguments")
	require.ErrorContains(t, run([]string{"main.go", "x"}), "no constants with comments")
	require.ErrorIs(t, run([]string{"nothing.go", "x"}), os.ErrNotExist)
	require.ErrorContains(t, writePage(new(strings.Builder), map[string]string{}), "has no comment")
}
