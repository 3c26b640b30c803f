package reprogenprocessor

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forkProgram starts Python and imports what takes long once, and then runs
// scripts in processes of their own: one for each line that it reads.
const forkProgram = `
import argparse, base64, importlib, json, os, re, runpy, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    job = json.loads(line)
    if os.fork() == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(job["folder"] + "/" + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
            os.chdir(job["folder"])
            sys.argv = [job["script"]] + job["args"]
            # As Python does for a script, and for PYTHONPATH.
            sys.path[:1] = [os.path.dirname(job["script"])] + [job["packages"]] * bool(job["packages"])
            runpy.run_path(job["script"], run_name="__main__")
        except SystemExit as left:
            os._exit(left.code)
        finally:
            os._exit(70)  # scripts end their process themselves
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
`

// forker runs scripts in processes that have their libraries already. What it
// leaves out is the start of Python.
type forker struct {
	mu     sync.Mutex
	in     io.WriteCloser
	out    *bufio.Scanner
	errors strings.Builder
}

func startForker(t *testing.T, py python, libraries ...string) *forker {
	cmd := exec.Command(py.path, append([]string{"-c", forkProgram}, libraries...)...)
	f := &forker{}
	var err error
	f.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	f.out, cmd.Stderr = bufio.NewScanner(out), &f.errors
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, f.in.Close())
		assert.NoError(t, cmd.Wait(), f.errors.String())
	})
	return f
}

// run runs an artifact's script; packages is where its modules are, or "".
func (f *forker) run(t *testing.T, artifact, packages string, args ...string) result {
	folder := t.TempDir()
	job, err := json.Marshal(map[string]any{"script": filepath.Join(artifact, "repro.py"), "folder": folder, "packages": packages,
		"args": append([]string{"--json"}, args...)})
	require.NoError(t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.in.Write(append(job, '\n'))
	require.NoError(t, err)
	require.True(t, f.out.Scan(), f.errors.String())
	r := result{Stdout: text(t, folder, "stdout"), Stderr: text(t, folder, "stderr")}
	r.Exit, err = strconv.Atoi(f.out.Text())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &r), "%d: %s\n%s", r.Exit, r.Stdout, r.Stderr)
	return r
}
