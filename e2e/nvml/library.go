// Package nvml compiles the gpu receiver's fake NVML library, and tells it what to do.
package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Build compiles the library at a path, with symbols left out as a define of it says.
func Build(tb testing.TB, path, define string) {
	tb.Helper()
	receiver := harness.Path("receiver", "gpureceiver")
	list := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	list.Dir = receiver
	list.Env = append(os.Environ(), "GOWORK=off")
	module, err := list.Output()
	require.NoError(tb, err)
	sources, err := filepath.Glob(filepath.Join(receiver, "testdata", "nvml", "fake_*.c"))
	require.NoError(tb, err)
	// The clock is the benchmark's.
	sources = slices.DeleteFunc(sources, func(path string) bool { return filepath.Base(path) == "fake_clock.c" })
	arguments := append([]string{
		"-shared", "-fPIC", "-O1", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS", "-D" + define,
		"-I" + filepath.Join(strings.TrimSpace(string(module)), "pkg", "nvml"), "-o", path,
	}, sources...)
	output, err := exec.CommandContext(tb.Context(), "gcc", arguments...).CombinedOutput() //nolint:gosec // tests choose the arguments
	require.NoError(tb, err, "%s", output)
}

// Set replaces the content of a control file at once, so that a library never reads half of it.
// Processes of other users may read it.
func Set(tb testing.TB, control string, lines ...string) {
	tb.Helper()
	next := control + ".next"
	require.NoError(tb, os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o644)) //nolint:gosec // pods read it
	require.NoError(tb, os.Rename(next, control))
}
