package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// root finds the repository's root, the nearest folder above the test's that
// holds the manifest.
var root = sync.OnceValue(func() string {
	folder, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		_, err := os.Stat(filepath.Join(folder, "builder-config.yaml"))
		if err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if !errors.Is(err, fs.ErrNotExist) || parent == folder {
			panic("the tests have to run inside the repository: no builder-config.yaml above the working directory")
		}
		folder = parent
	}
})

// Path returns the absolute path of a file of the repository, given its parts
// below the repository's root.
func Path(elements ...string) string {
	return filepath.Join(append([]string{root()}, elements...)...)
}

// Binary returns the path of an executable that a make target builds, given
// its parts below the repository's root. Where it is missing the test fails
// and names the target.
func Binary(tb testing.TB, target string, elements ...string) string {
	tb.Helper()
	path := Path(elements...)
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatalf("%s is missing; build it with: make %s", filepath.Join(elements...), target)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		tb.Fatalf("%s is not executable; build it with: make %s", filepath.Join(elements...), target)
	}
	return path
}

// binaryVariable is the environment variable that names another collector to
// test than the one that was built here, for example one out of an image.
const binaryVariable = "OTELCOL_ML_BINARY"

// CollectorBinary returns the path of the collector under test.
func CollectorBinary(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv(binaryVariable); path != "" {
		return path
	}
	return Binary(tb, "build", "bin", "otelcol-ml")
}

// serverBinary returns the path of one of the servers that
// e2e/servers/build.sh builds.
func serverBinary(tb testing.TB, name string) string {
	tb.Helper()
	return Binary(tb, "e2e", ".cache", "servers", name)
}
