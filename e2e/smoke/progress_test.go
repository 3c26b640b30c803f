package smoke

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// buildModule runs internal/tools/progress.sh on the build of a module with two
// packages that no cache has, and a third that is downloaded from a proxy in a
// folder. It returns the exit code and what was printed.
func buildModule(t *testing.T, statement string, wrap ...string) (int, string) {
	t.Helper()
	dir, proxy := t.TempDir(), t.TempDir()
	const dependency = "module example.com/dependency\n\ngo 1.26\n"
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	for name, text := range map[string]string{"go.mod": dependency, "d.go": "package dependency\n\nconst C = `" + rand.Text() + "`\n"} {
		file, err := files.Create("example.com/dependency@v1.0.0/" + name)
		require.NoError(t, err)
		_, err = file.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	for name, text := range map[string]string{
		filepath.Join(proxy, "example.com/dependency/@v/v1.0.0.info"): `{"Version":"v1.0.0"}`,
		filepath.Join(proxy, "example.com/dependency/@v/v1.0.0.mod"):  dependency,
		filepath.Join(proxy, "example.com/dependency/@v/v1.0.0.zip"):  archive.String(),
		filepath.Join(dir, "go.mod"):                                  "module example.com/thing\n\ngo 1.26\n\nrequire example.com/dependency v1.0.0\n",
		filepath.Join(dir, "part/part.go"):                            "package part\n\nconst C = `" + rand.Text() + "`\n",
		filepath.Join(dir, "main.go"): fmt.Sprintf("package main\n\nimport (\n\t\"example.com/dependency\"\n\t\"example.com/thing/part\"\n)\n\n"+
			"func main() {\n\tprintln(dependency.C, part.C)\n\t%s\n}\n", statement),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}

	args := append(wrap, harness.Path("internal", "tools", "progress.sh"), "go", "thing", "build", "-trimpath", "-o", filepath.Join(dir, "thing"), ".")
	command := exec.CommandContext(t.Context(), args[0], args[1:]...)
	command.Dir = dir
	command.Env = append(os.Environ(), "PROGRESS_EVERY=0", "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GOSUMDB=off",
		"GOPROXY=file://"+proxy, "GOMODCACHE="+t.TempDir())
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	} else {
		assert.FileExists(t, filepath.Join(dir, "thing"))
	}
	return command.ProcessState.ExitCode(), string(output)
}

// A log has one line a step, and no line of what the go command downloads.
func TestBuildShowsProgress(t *testing.T) {
	t.Parallel()
	code, output := buildModule(t, "")
	assert.Zero(t, code, output)
	for _, line := range []string{"thing: modules downloaded: 1", "thing: packages compiled: 1 of 3", "thing: packages compiled: 3 of 3", "thing: packages compiled: 3 in "} {
		assert.Contains(t, output, line)
	}
	assert.NotContains(t, output, "go: downloading")
	assert.NotContains(t, output, "example.com/thing/part")
	assert.NotContains(t, output, "\r", "a bar is for terminals")
}

// A build that fails shows what the compiler says, and fails.
func TestBuildShowsErrors(t *testing.T) {
	t.Parallel()
	code, output := buildModule(t, "missing()")
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "# example.com/thing\n")
	assert.Contains(t, output, "main.go:10:2: undefined: missing\n")
	assert.NotContains(t, output, "go: downloading")

	code, output = buildModule(t, "} }")
	assert.Equal(t, 1, code, "a package that cannot be listed")
	assert.Contains(t, output, "main.go:10:4: ")
}

// A terminal has a bar, which is gone at the end and before each error.
func TestBuildDrawsBar(t *testing.T) {
	t.Parallel()
	terminal := []string{harness.Python(t), "-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"}
	code, output := buildModule(t, "", terminal...)
	assert.Zero(t, code, output)
	assert.Contains(t, output, "\r\x1b[K["+strings.Repeat("#", 30)+"] thing: packages compiled: 3 of 3\r\x1b[K")

	code, output = buildModule(t, "missing()", terminal...)
	assert.Equal(t, 1, code)
	assert.Contains(t, output, "\r\x1b[K# example.com/thing\r\n")
}

// What installs packages is counted by its lines.
func TestLinesShowProgress(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), harness.Path("internal", "tools", "progress.sh"), "lines", "packages fetched", "2", "^Collecting ")
	command.Env = append(os.Environ(), "PROGRESS_EVERY=0")
	command.Stdin = strings.NewReader("Collecting a==1\n  Downloading a.whl\nCollecting b==2")
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	assert.Regexp(t, `^packages fetched: 1 of 2\npackages fetched: 2 of 2\npackages fetched: 2 in \d+ s\n$`, string(output))
}
