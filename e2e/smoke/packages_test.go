package smoke

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Files that name packages of Debian, and what of e2e/packages tries them from an
// empty root.
var packageLists = map[string]string{
	"CONTRIBUTING.md":            "try_build",
	"docker/Dockerfile":          "try_image",
	"docker/engine.sh":           "try_engine",
	"e2e/cluster/packages.sh":    "try_cluster",
	"e2e/grafana/page.sh":        "try_grafana",
	"e2e/page/chromium.sh":       "try_page",
	"e2e/release/compiler.sh":    "try_release",
	"e2e/servers/Dockerfile":     "try_servers",
	"e2e/servers/kafka/fetch.sh": "try_kafka",
	// It installs what the "# apt:" lines of examples name.
	"examples/venv.sh": "try_examples",
}

func TestPackageListsAreTried(t *testing.T) {
	script, err := os.ReadFile(harness.Path("e2e", "packages", "try.sh"))
	require.NoError(t, err)
	var found []string
	require.NoError(t, filepath.WalkDir(harness.Path(), func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if file != harness.Path() && slices.Contains([]string{".git", ".cache", "bin", "dist", "demo-output", "testdata", "packages"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || strings.HasSuffix(file, ".go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if strings.Contains(string(text), "apt-get install") {
			found = append(found, relative(t, file))
		}
		return err
	}))
	for _, file := range found {
		trial, known := packageLists[file]
		if assert.True(t, known, "%s names packages that e2e/packages/try.sh does not try", file) {
			assert.Contains(t, string(script), trial+"()")
		}
	}
	assert.Len(t, found, len(packageLists))
}
