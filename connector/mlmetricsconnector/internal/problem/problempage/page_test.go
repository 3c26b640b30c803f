package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestPageIsGeneratedFromTheTable(t *testing.T) {
	committed, err := os.ReadFile("../../../../../docs/problems.md")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "problems.md")
	require.NoError(t, run([]string{file}))
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(page), string(committed), "run go generate")
	for _, kind := range mlattr.Problems {
		assert.Contains(t, string(page), "\n| `"+kind.Name+"` |")
		assert.NotEmpty(t, kind.Title)
	}
}

func TestWithoutAFileNothingIsWritten(t *testing.T) {
	require.ErrorContains(t, run(nil), "want one argument")
}
