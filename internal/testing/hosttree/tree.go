// Package hosttree writes the files of a simulated host.
package hosttree

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed node.txt
var node string // their names have colons, which files of a Go module must not have

// Write writes the files of node.txt below a new root directory, and returns that. With more
// lines, their files replace those.
func Write(t testing.TB, more ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	Change(t, root, append(strings.Split(node, "\n"), more...)...)
	return root
}

// Change writes files: PATH = TEXT, or for a symbolic link PATH -> TARGET.
func Change(t testing.TB, root string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		name, text, isFile := strings.Cut(line, " =")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, target, _ := strings.Cut(name, " -> ")
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		if !isFile {
			require.NoError(t, os.Symlink(target, path))
			continue
		}
		text = strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(strings.TrimSpace(text))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	}
}
