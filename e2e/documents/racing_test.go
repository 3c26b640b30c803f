package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every package is tested, and one that is tested without the race detector starts no
// goroutine, whatever its sources look like to a search.
func TestRacingPackages(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	lines := func(name string, args ...string) []string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = root, append(cmd.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
		out, err := cmd.Output()
		require.NoError(t, err)
		return strings.Fields(string(out))
	}
	racing, plain := lines("internal/tools/racing.sh", "race"), lines("internal/tools/racing.sh", "plain")
	all := lines("go", "list", "work")
	slices.Sort(all)
	assert.Equal(t, all, slices.Sorted(slices.Values(slices.Concat(racing, plain))), "each package once")
	const module = "github.com/otelcol-ml/otelcol-ml/"
	assert.Contains(t, racing, module+"processor/reprogenprocessor")
	assert.Contains(t, plain, module+"internal/content")
	assert.Contains(t, plain, module+"internal/shared/share", "of net/http it has a key alone")
	for _, name := range plain {
		files, err := filepath.Glob(filepath.Join(root, strings.TrimPrefix(name, module), "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, name)
		for _, file := range files {
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s has a go statement", file)
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && of.Name == "http" && n.Sel.Name != "LocalAddrContextKey" {
						t.Errorf("%s uses http.%s", file, n.Sel.Name)
					}
				case *ast.CallExpr:
					if called, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Parallel", "RunParallel", "AfterFunc", "Go"}, called.Sel.Name) {
						t.Errorf("%s calls %s", file, called.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
