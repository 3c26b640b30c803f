package reproductions

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoMoreEntriesOfAFolderAreReadThanTheLimit(t *testing.T) {
	folder := t.TempDir()
	for i := range maxEntries + 1 {
		require.NoError(t, os.Mkdir(filepath.Join(folder, fmt.Sprintf("%016x", i)), 0o700))
	}
	root, err := os.OpenRoot(folder)
	require.NoError(t, err)
	defer func() { assert.NoError(t, root.Close()) }()
	names, err := folders(root, ".", groupName)
	require.NoError(t, err)
	assert.Len(t, names, maxEntries)
	assert.IsIncreasing(t, names)
}
