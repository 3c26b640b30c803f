package problem_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
)

func TestVerdicts(t *testing.T) {
	folder := t.TempDir()
	for _, missing := range []string{folder, filepath.Join(folder, "not", "there")} {
		none, err := problem.ReadVerdicts(missing)
		require.NoError(t, err)
		assert.Empty(t, none.Of("slow"))
	}
	file := filepath.Join(folder, "verdicts")
	require.NoError(t, os.WriteFile(file, []byte(`slow a1 wrong
slow a1 right, no: see below
slow a1 right it was the disk
slow a2 wrong
  slow   a3   right
sad a4 right
slow a5 maybe
slow a6

gpu_failed b1 wrong`), 0o600))
	all, err := problem.ReadVerdicts(folder)
	require.NoError(t, err)
	assert.Equal(t, problem.Verdicts{{"slow", "right"}: 2, {"slow", "wrong"}: 1, {"gpu_failed", "wrong"}: 1}, all)
	assert.Equal(t, "by the verdicts here, 2 of 3 such problems were right", all.Of("slow"))
	assert.Equal(t, "by the verdicts here, 0 of 1 such problems were right", all.Of("gpu_failed"))
	assert.Empty(t, all.Of("failing"))

	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("x", 5<<20)), 0o600))
	_, err = problem.ReadVerdicts(folder)
	require.ErrorContains(t, err, "larger than")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Symlink("/etc/hostname", file))
	_, err = problem.ReadVerdicts(folder)
	require.ErrorContains(t, err, "not a regular file")
}
