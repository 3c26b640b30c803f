package documents

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CheckTable compares a table of a page, between comments with its name, with what a test
// has found, or writes it.
func CheckTable(t *testing.T, path, name, table string, write bool) {
	t.Helper()
	page, err := os.ReadFile(path) //nolint:gosec // a document of the repository
	require.NoError(t, err)
	begin, end := "<!-- "+name+": written by a test -->\n", "<!-- end of "+name+" -->"
	head, rest, found := strings.Cut(string(page), begin)
	require.True(t, found, begin)
	written, tail, found := strings.Cut(rest, end)
	require.True(t, found, end)
	if write {
		require.NoError(t, os.WriteFile(path, []byte(head+begin+table+end+tail), 0o600)) //nolint:gosec // the same document
		return
	}
	assert.Equal(t, table, written, "run the test with -update, and read the diff")
}
